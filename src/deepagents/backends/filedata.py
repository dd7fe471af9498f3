"""Files at rest in state or in a store, and how concurrent changes to them become one.

A file is `{"content": str, "encoding": "utf-8" | "base64", "created_at": iso, "modified_at": iso}`. An older
form, with a list of lines as content and no encoding, is read as well.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, cast

from deepagents._text import merge3, replace_exact
from deepagents.backends.kinds import BINARY_HEAD, as_content, file_kind
from deepagents.backends.results import FileData
from deepagents.errors import BackendError

_VERSION_LENGTH: Final = 16
_BASE64_HEAD: Final = BINARY_HEAD // 3 * 4 + 4
_CONFLICT_LENGTH: Final = 8
_LABELS: Final = ("current", "incoming")


def now() -> str:
    """Return the time as it is kept in files."""
    return datetime.now(UTC).isoformat()


def create_file_data(content: str, created_at: str | None = None, encoding: str = "utf-8") -> FileData:
    """Make a file, modified now; without `created_at` it was created now, too."""
    moment = now()
    return {
        "content": content,
        "encoding": encoding,
        "created_at": created_at or moment,
        "modified_at": moment,
    }


def update_file_data(file_data: FileData, content: str) -> FileData:
    """Give a file new content; its encoding and its time of creation stay."""
    encoding = file_data.get("encoding", "utf-8")
    return create_file_data(content, file_data.get("created_at"), encoding)


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
            case {"edit": _} | {"append": _}:
                continue
            case {"delete": _}:
                shown[path] = None
            case {"base": _}:
                shown[path] = {key: value for key, value in change.items() if key != "base"}
            case _:
                shown[path] = change
    return shown


def file_data_to_string(file_data: Mapping[str, Any]) -> str:
    """Return the content as one string.

    Raises:
        TypeError: when the content is neither a string nor a list of strings.
    """
    content: object = file_data.get("content")
    match content:
        case str():
            return content
        case list() if all(isinstance(line, str) for line in cast("list[object]", content)):
            return "\n".join(cast("list[str]", content))
        case _:
            kind = type(cast("object", content)).__name__
            raise TypeError(f"File content must be a string or a list of strings, got {kind}")


def file_data_to_bytes(file_data: FileData) -> bytes:
    """Return the bytes that a file stands for.

    Raises:
        TypeError: when the content has a wrong type.
        ValueError: when base64 content is not base64.
    """
    content = file_data_to_string(file_data)
    if is_base64(file_data):
        return base64.b64decode(content, validate=True)
    return content.encode("utf-8", "surrogatepass")


def is_base64(file_data: Mapping[str, Any]) -> bool:
    """Tell whether the content is bytes in base64."""
    return file_data.get("encoding") == "base64"


def file_size(file_data: FileData) -> int:
    """Return the size in bytes; 0 when the content cannot be read."""
    try:
        content = file_data_to_string(file_data)
        if is_base64(file_data):
            return len(content) // 4 * 3 - content[-2:].count("=")
    except TypeError:
        return 0
    return len(content) if content.isascii() else len(content.encode("utf-8", "surrogatepass"))


def is_text(path: str, file_data: Mapping[str, Any]) -> bool:
    """Tell whether a file reads as text: it is no media, and holds no bytes that are none.

    Raises:
        TypeError: when the content has a wrong type.
    """
    if is_base64(file_data) or file_kind(path) != "text":
        return False
    return "\0" not in file_data_to_string(file_data)[:BINARY_HEAD]


def searched_bytes(file_data: FileData) -> bytes:
    """Return the bytes to search: all of a file, but of a binary one only those that show it.

    Raises:
        TypeError: when the content has a wrong type, or base64 content is not base64.
    """
    content = file_data_to_string(file_data)
    if not is_base64(file_data):
        return content.encode("utf-8", "surrogatepass")
    try:
        head = base64.b64decode(content[:_BASE64_HEAD])
        return head if b"\0" in head[:BINARY_HEAD] else base64.b64decode(content)
    except ValueError as error:
        raise TypeError(f"File content must be base64: {error}") from error


def file_version(file_data: Mapping[str, Any]) -> str:
    """Return a short name for what a file holds now; equal content has an equal version."""
    kind = "base64" if is_base64(file_data) else "utf-8"
    content = file_data_to_string(file_data).encode("utf-8", "surrogatepass")
    return hashlib.sha256(kind.encode() + b"\0" + content).hexdigest()[:_VERSION_LENGTH]


def reduce_files(left: dict[str, Any] | None, writes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Fold writes into the files of a `files` channel, one after the other.

    A write maps a path to one of:

    - `None`: the file is removed.
    - A file, or its text alone: it replaces what is there.
    - A file with `"base"`, the content that its writer started from (`None`: no file): merged by lines with
      what others made of that base. Clashes in text stand between conflict markers; clashes in binary files
      leave both, the older one as `<path>.conflict-<hex>`.
    - `{"edit": [old, new, replace_all], "modified_at": iso}`: applied to what is there, if it still fits.
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
        case {"edit": [str(old), str(new), bool(replace_all)]}:
            if current is not None:
                files[path] = _edited(current, old, new, replace_all, change.get("modified_at"))
        case {"append": str(added)}:
            data = base64.b64decode(added) if is_base64(change) else added
            with suppress(TypeError, ValueError):
                files[path] = appended(path, current, data, change.get("modified_at"))
        case {"delete": version}:
            _delete(files, path, version)
        case {"base": base}:
            _merge(files, path, base, {key: value for key, value in change.items() if key != "base"})
        case _:
            files[path] = _created_when(current, _file(path, change))


def _file(path: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or "content" not in given:
        raise TypeError(f"files[{path!r}] must be text or a mapping with content, got {given!r}")
    return cast("Mapping[str, Any]", given)


def _delete(files: dict[str, Any], path: str, version: str) -> None:
    if path in files and _holds(files[path], version):
        del files[path]


def _holds(current: Mapping[str, Any], version: str) -> bool:
    try:
        return file_version(current) == version
    except TypeError:
        return False


def appended(
    path: str, current: Mapping[str, Any] | None, added: str | bytes, modified_at: str | None = None
) -> FileData:
    """Make the file that has something more at its end.

    Raises:
        TypeError: when the content of the file has a wrong type.
        ValueError: when it should be base64, and is not.
    """
    moment = modified_at or now()
    before = current or {"content": "", "created_at": moment}
    text, encoding = file_data_to_string(before), "utf-8"
    if isinstance(added, str) and "\0" not in added and not is_base64(before) and file_kind(path) == "text":
        text += added
    else:
        data = added if isinstance(added, bytes) else added.encode()
        text, encoding = as_content(path, file_data_to_bytes(cast("FileData", before)) + data)
    return cast("FileData", {**before, "content": text, "encoding": encoding, "modified_at": moment})


def _edited(
    current: Mapping[str, Any], old: str, new: str, replace_all: bool, modified_at: str | None
) -> Mapping[str, Any]:
    try:
        content = replace_exact(file_data_to_string(current), old, new, replace_all).content
    except (BackendError, TypeError):
        return current
    return {"encoding": "utf-8", **current, "content": content, "modified_at": modified_at}


def _created_when(current: Mapping[str, Any] | None, change: Mapping[str, Any]) -> Mapping[str, Any]:
    created = current.get("created_at") if current else None
    return {**change, "created_at": created} if created else change


def _merge(files: dict[str, Any], path: str, base: str | None, incoming: Mapping[str, Any]) -> None:
    current: Mapping[str, Any] | None = files.get(path)
    files[path] = _created_when(current, incoming)
    if current is None:
        return
    try:
        ours, theirs = file_data_to_string(current), file_data_to_string(incoming)
    except TypeError:
        return
    if ours in (base, theirs):
        return
    if is_base64(current) or is_base64(incoming):
        digest = hashlib.sha256(ours.encode("utf-8", "surrogatepass")).hexdigest()[:_CONFLICT_LENGTH]
        files[f"{path}.conflict-{digest}"] = current
        return
    files[path] = {**files[path], "content": merge3(base or "", ours, theirs, _LABELS).text}


def reduce_pair(left: dict[str, Any] | None, right: Mapping[str, Any]) -> dict[str, Any]:
    """Fold one write into the files of a `files` channel."""
    return reduce_files(left, [right])


_file_data_reducer = reduce_pair
_file_data_delta_reducer = reduce_files


def encoded(text: str) -> bytes:
    """Return text as UTF-8.

    Raises:
        BackendError: `invalid_encoding` for half characters, `invalid_argument` for what is no text.
    """
    if not isinstance(cast(object, text), str):
        raise BackendError("invalid_argument", f"Text is wanted here, not a {type(text).__name__}.")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BackendError(
            "invalid_encoding", f"The text cannot be written as UTF-8: {error.reason} at {error.start}."
        ) from error


def checked_bytes(path: str, content: bytes) -> bytes:
    """Return bytes as they are.

    Raises:
        BackendError: `invalid_argument`, for what is no bytes.
    """
    if isinstance(cast(object, content), (bytes, bytearray, memoryview)):
        return bytes(content)
    kind = type(content).__name__
    raise BackendError("invalid_argument", f"The content of '{path}' must be bytes, not a {kind}.")


def checked_addition(path: str, content: str | bytes) -> str | bytes:
    """Return what is to be added to a file.

    Raises:
        BackendError: `invalid_encoding` for text with half characters, `invalid_argument` for neither text
            nor bytes.
    """
    if not isinstance(content, str):
        return checked_bytes(path, content)
    encoded(content)
    return content
