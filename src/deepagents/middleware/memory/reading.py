"""Memory files are read in one transfer; whatever goes wrong with one is a code beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast, get_args

from deepagents._paths import is_within, normalise
from deepagents.backends.calls import Files
from deepagents.backends.results import FileDownloadResponse
from deepagents.errors import BackendError, ErrorCode, ToolFailure
from deepagents.middleware.memory.prompt import MOST_SHOWN


@dataclass(frozen=True, slots=True)
class Read:
    """What reading brought: texts and error codes by source; a file that is not there is in neither."""

    contents: dict[str, str] = field(default_factory=dict[str, str])
    problems: dict[str, str] = field(default_factory=dict[str, str])


async def read_sources(files: Files, sources: Sequence[str]) -> Read:
    """Read sources as far as they are shown, and one character more where there is more."""
    wanted = list(dict.fromkeys(sources))
    try:
        answers = await files.download_each(wanted)
    except ToolFailure as failure:
        return Read(problems=dict.fromkeys(wanted, failure.code))
    read = Read()
    for source, answer in zip(wanted, answers, strict=True):
        try:
            read.contents[source] = _text(answer)[: MOST_SHOWN + 1]
        except BackendError as error:
            if error.code != "file_not_found":
                read.problems[source] = error.code
    return read


def _text(answer: FileDownloadResponse) -> str:
    if answer.error or answer.content is None:
        known = answer.error in get_args(ErrorCode)
        raise BackendError(cast("ErrorCode", answer.error) if known else "io_error", "not read")
    try:
        return answer.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BackendError("invalid_encoding", "not UTF-8") from error


async def sources_below(files: Files, sources: Sequence[str], path: str) -> list[str]:
    """Name the sources that are the file at a path or lie below it, by whichever name or link."""
    changed = await _place(files, path)
    found: list[str] = []
    for source in sources:
        if is_within(await _place(files, source), changed):
            found.append(source)
    return found


async def _place(files: Files, path: str) -> str:
    try:
        return await files.place(normalise(path))
    except BackendError:
        return path
