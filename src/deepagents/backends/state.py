"""Keep files in the state of a graph: they live and die with the thread."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast

from deepagents._deprecation import warn_legacy
from deepagents._state.runtime import read_channel, write_channel
from deepagents._text import Replacement, merge3, replace_each
from deepagents._values import valueclass
from deepagents.backends import operations as ops
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filedata import (
    file_data_to_string,
    file_version,
    is_base64,
    make_appended,
    now,
    text_or_none,
)
from deepagents.backends.keyed_files import KeyedFiles
from deepagents.backends.operations import Operation, TransferBackend
from deepagents.backends.results import FileData
from deepagents.errors import BackendError

CHANNEL: Final = "files"
# Characters. The base is kept with each write, so above this the thread would grow twice as fast.
_MAX_BASE: Final = 100_000
_CONFLICT_LENGTH: Final = 8
_Edit: TypeAlias = tuple[str, str, bool]
_LABELS: Final = ("current", "incoming")
_CAN: Final = Capabilities(delete=True, versions=True, state_files=True, host=False, in_process=True)


class StateBackend(TransferBackend):
    """Files in the `files` channel of the running graph; one instance serves all runs.

    Parallel changes to one file are merged by lines. Outside a graph run every operation raises.
    """

    def __init__(self, runtime: Any = None, *, file_format: str | None = None) -> None:
        if runtime is not None:
            warn_legacy("StateBackend(runtime) is deprecated: write StateBackend(), it finds the run itself.")
        elif file_format is not None:
            warn_legacy("StateBackend(file_format=...) is deprecated and ignored: both forms are read.")

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do at `path`."""
        return _CAN

    async def _perform(self, op: Operation) -> Any:
        return await _StateFiles(op, read_channel(CHANNEL) or {}).perform(op)


@valueclass
class _StateFiles(KeyedFiles):
    """The files of the running graph for one operation, whose changes go to the `files` channel.

    Nothing is locked: each task of a step has its own view of the channel, and the reducer merges what they
    write.
    """

    op: Operation
    held: Mapping[str, FileData]

    async def files(self) -> Mapping[str, FileData]:
        return self.held

    async def put_all(self, files: Mapping[str, FileData | None]) -> None:
        # One write for all: each write is an entry in the checkpoint.
        write_channel(CHANNEL, {path: self._change(path, data) for path, data in files.items()})

    def _change(self, path: str, data: FileData | None) -> Mapping[str, Any] | None:
        """Return how a change to one file is written: what `reduce_files` takes."""
        current = self.held.get(path)
        if data is None:
            # With the version, so that a file that another task of this step changes is not lost.
            if current is None or text_or_none(current) is None:
                return None
            return {"delete": file_version(current)}
        match self.op:
            case ops.Edit(edits=[first, *more]):
                edit = {"edit": list(first), "modified_at": data.get("modified_at")}
                return FileChange({**edit, "then": [list(each) for each in more]} if more else edit, data)
            case ops.Append(content=content):
                return FileChange(_addition(content), data)
            case ops.Write():
                # The reducer merges by lines what several writers made of one base; without it the last one
                # wins.
                base = None if current is None else text_or_none(current)
                mergeable = current is None if base is None else len(base) < _MAX_BASE
                return {**data, "base": base} if mergeable else data
            case _:
                return data


def _addition(content: str | bytes) -> dict[str, str]:
    """Return what is added alone, so that the checkpoint does not grow by what is there."""
    if isinstance(content, str):
        return {"append": content, "modified_at": now()}
    return {"append": base64.b64encode(content).decode(), "encoding": "base64", "modified_at": now()}


class FileChange(dict[str, Any]):
    """A change to a file, as the `files` channel takes it, and the file that it leads to.

    Streams show the file. Savers see a plain dict, so that a thread grows by the change alone.
    """

    def __init__(self, change: Mapping[str, Any], file: FileData) -> None:
        super().__init__(change)
        self.file = file


def show_file_updates(update: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a write to the `files` channel leads to: files by path, `None` for those deleted.

    A saved change that comes again when a run is resumed is left out: it was shown when it was made.
    """
    shown: dict[str, Any] = {}
    for path, change in update.items():
        match change:
            case FileChange():
                shown[path] = change.file
            # Plain dicts: the file that they lead to was with the `FileChange`, which no saver keeps.
            case {"edit": _} | {"append": _}:
                continue
            case {"delete": _}:
                shown[path] = None
            case {"base": _}:
                shown[path] = {key: value for key, value in change.items() if key != "base"}
            case _:
                shown[path] = change
    return shown


def reduce_files(left: dict[str, Any] | None, writes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Fold writes into the files of a `files` channel, one after the other.

    A write maps a path to one of:

    - `None`: the file is removed.
    - A file, or its text alone: it replaces what is there.
    - A file with `"base"`, the content that its writer started from (`None`: no file): merged by lines with
      what others made of that base. Clashes in text stand between conflict markers; clashes in binary files
      leave both, the older one as `<path>.conflict-<hex>`.
    - `{"edit": [old, new, replace_all], "modified_at": iso}`: applied to what is there, if it still fits;
      with `"then"`, a list of further ones, all are or none is.
    - `{"append": text, "modified_at": iso}`, or base64 with `"encoding": "base64"`: added to the end of what
      is there; without a file it makes one.
    - `{"delete": version}`: the file is removed, unless it changed since that version.
    """
    files = dict(left or {})
    for write in writes:
        for path, change in write.items():
            _apply(files, path if path.startswith("/") else f"/{path}", change)
    return files


def _apply(files: dict[str, Any], path: str, change: Mapping[str, Any] | str | None) -> None:
    current = files.get(path)
    match change:
        case None:
            files.pop(path, None)
        case str():
            files[path] = {"content": change, "encoding": "utf-8"}
        case {"edit": [str(), str(), bool()] as first}:
            if current is not None:
                edits = [Replacement(*cast("_Edit", each)) for each in (first, *change.get("then", ()))]
                files[path] = _apply_edit(current, edits, change.get("modified_at"))
        case {"append": str(added)}:
            data = base64.b64decode(added) if is_base64(change) else added
            # A reducer that raises would break the thread for good; the caller has checked its own change.
            with suppress(TypeError, ValueError):
                files[path] = make_appended(path, current, data, change.get("modified_at"))
        case {"delete": version}:
            _delete(files, path, version)
        case {"base": base}:
            _merge(files, path, base, {key: value for key, value in change.items() if key != "base"})
        case _:
            files[path] = _keep_creation_time(current, _file(path, change))


def _file(path: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or "content" not in given:
        raise TypeError(f"files[{path!r}] must be text or a mapping with content, got {given!r}")
    return cast("Mapping[str, Any]", given)


def _delete(files: dict[str, Any], path: str, version: str) -> None:
    current = files.get(path)
    if current is not None and text_or_none(current) is not None and file_version(current) == version:
        del files[path]


def _apply_edit(
    current: Mapping[str, Any], edits: Sequence[Replacement], modified_at: str | None
) -> Mapping[str, Any]:
    try:
        content, _ = replace_each(file_data_to_string(current), edits)
    # Another writer of the same step took the text away; its change stands.
    except (BackendError, TypeError):
        return current
    return {"encoding": "utf-8", **current, "content": content, "modified_at": modified_at}


def _keep_creation_time(current: Mapping[str, Any] | None, change: Mapping[str, Any]) -> Mapping[str, Any]:
    created = current.get("created_at") if current else None
    return {**change, "created_at": created} if created else change


def _merge(files: dict[str, Any], path: str, base: str | None, incoming: Mapping[str, Any]) -> None:
    current: Mapping[str, Any] | None = files.get(path)
    files[path] = _keep_creation_time(current, incoming)
    if current is None:
        return
    try:
        ours, theirs = file_data_to_string(current), file_data_to_string(incoming)
    except TypeError:
        return
    if ours in (base, theirs):
        return
    if is_base64(current) or is_base64(incoming):
        # Named by content, so that replaying the same writes leads to the same files.
        digest = hashlib.sha256(ours.encode("utf-8", "surrogatepass")).hexdigest()[:_CONFLICT_LENGTH]
        files[f"{path}.conflict-{digest}"] = current
        return
    files[path] = {**files[path], "content": merge3(base or "", ours, theirs, _LABELS)}
