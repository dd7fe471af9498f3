"""Keep the contents of memory files in state, and read them from the backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NotRequired, cast, get_args

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from typing_extensions import TypedDict

from deepagents._paths import is_within, normalise
from deepagents._state.delta_channels import SNAPSHOT_AFTER, GrowingChannel
from deepagents._state.schema import merge_latest
from deepagents.backends.handle import FileCalls
from deepagents.backends.results import FileDownloadResponse
from deepagents.errors import BackendError, ErrorCode, ToolFailure

CONTENTS: Final = "memory_contents"
PROBLEMS: Final = "memory_problems"
CHANGED: Final = "_memory_changed"
MAX_SHOWN: Final = 40_000
"""Characters of one file that the model is shown."""


def fold_changes(known: dict[str, Any] | None, writes: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    """Fold changes file by file; `None` instead of a change forgets everything before it."""
    reset = max((at for at, write in enumerate(writes) if write is None), default=-1)
    later = [write for write in writes[reset + 1 :] if write is not None]
    return merge_latest(None if reset >= 0 else known, later)


def keep_latest(known: bool, given: bool) -> bool:
    """Return the later of two writes."""
    return given


_ByPath = Annotated[
    dict[str, str], GrowingChannel(fold_changes, snapshot_frequency=SNAPSHOT_AFTER), PrivateStateAttr
]


class MemoryState(AgentState[Any]):
    """The text of each file, an error code for each that could not be read, and whether to read all again."""

    memory_contents: NotRequired[_ByPath]
    memory_problems: NotRequired[_ByPath]
    _memory_changed: NotRequired[Annotated[bool, PrivateStateAttr, keep_latest]]


class MemoryStateUpdate(TypedDict, total=False):
    """The state keys that reading memory writes; `None` instead of a text forgets a file."""

    memory_contents: dict[str, str | None]
    memory_problems: dict[str, str | None]
    _memory_changed: bool


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """Texts and error codes by source; a file that does not exist is in neither."""

    contents: dict[str, str] = field(default_factory=dict[str, str])
    problems: dict[str, str] = field(default_factory=dict[str, str])

    def diff(self, state: Mapping[str, Any], sources: Sequence[str]) -> dict[str, Any]:
        """Return the update that brings these sources up to date; others stay as they are."""
        update: dict[str, Any] = {}
        for key, now in ((CONTENTS, self.contents), (PROBLEMS, self.problems)):
            known: Mapping[str, str] = state.get(key) or {}
            gone = dict.fromkeys(each for each in sources if each in known and each not in now)
            changed = {each: text for each, text in now.items() if known.get(each) != text}
            if gone or changed:
                update[key] = gone | changed
        return update


async def read_sources(files: FileCalls, sources: Sequence[str]) -> MemoryFiles:
    """Read sources in one transfer, each as far as it is shown and one character more."""
    wanted = list(dict.fromkeys(sources))
    try:
        answers = await files.download_each(wanted)
    except ToolFailure as failure:
        return MemoryFiles(problems=dict.fromkeys(wanted, failure.code))
    read = MemoryFiles()
    for source, answer in zip(wanted, answers, strict=True):
        try:
            read.contents[source] = _decode(answer)[: MAX_SHOWN + 1]
        except BackendError as error:
            if error.code != "file_not_found":
                read.problems[source] = error.code
    return read


def _decode(answer: FileDownloadResponse) -> str:
    if answer.error or answer.content is None:
        # Backends of other packages may answer with any text.
        is_code = answer.error in get_args(ErrorCode)
        raise BackendError(cast("ErrorCode", answer.error) if is_code else "io_error", "not read")
    try:
        # Editors on Windows begin a file with a byte order mark, which is no part of the text.
        return answer.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BackendError("invalid_encoding", "not UTF-8") from error


async def sources_below(files: FileCalls, sources: Sequence[str], path: str) -> list[str]:
    """Find the sources that are the file at a path or lie below it, with links resolved."""
    changed = await _real_path(files, path)
    return [source for source in sources if is_within(await _real_path(files, source), changed)]


async def _real_path(files: FileCalls, path: str) -> str:
    try:
        return await files.real_path(normalise(path))
    except BackendError:
        return path
