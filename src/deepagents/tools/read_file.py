"""Page text; hand over images and documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents._text import number_lines, truncate, window
from deepagents.backends._older_shapes import NumberedRead
from deepagents.backends.filedata import file_data_to_string
from deepagents.backends.kinds import file_kind
from deepagents.backends.results import FileData, ReadResult
from deepagents.errors import BackendError, ToolFailure
from deepagents.tools._media import media_block, media_of, text_inside
from deepagents.tools._tool import CHARACTERS_PER_TOKEN, ToolContext, ToolOutput, ToolSpec
from deepagents.tools._video import video_dependencies_available
from deepagents.tools._watch import Seconds, watch

DEFAULT_READ_OFFSET = 0
DEFAULT_READ_LIMIT = 100

EMPTY_FILE = "System reminder: File exists but has empty contents"
NO_LINES = "System reminder: no lines were read, because limit was {limit}"
CUT = "The page was cut to fit: call read_file again from the next offset, or with a smaller limit."
_LONG_LINE = (
    "Line {line} alone is longer than one result may be; its start is shown. Use grep to find text in it."
)


@dataclass(frozen=True, slots=True)
class Shown:
    """The lines to show: counted from 1, both ends included; `next_offset` from 0."""

    text: str
    start: int
    end: int
    total: int | None
    next_offset: int | None


class ReadFileSchema(BaseModel):
    """What `read_file` takes."""

    file_path: str = Field(description="Absolute file path.")
    offset: int = Field(default=DEFAULT_READ_OFFSET, description="First line, counted from 0.")
    limit: int = Field(default=DEFAULT_READ_LIMIT, description="Number of lines.")


class ReadVideoFileSchema(ReadFileSchema):
    """What `read_file` takes where videos are shown as frames."""

    offset: int = Field(
        default=DEFAULT_READ_OFFSET, description="First line, counted from 0; of a video, first second."
    )
    limit: int = Field(default=DEFAULT_READ_LIMIT, description="Number of lines; of a video, seconds.")


async def _read_file(
    desk: ToolContext, file_path: str, offset: int = DEFAULT_READ_OFFSET, limit: int = DEFAULT_READ_LIMIT
) -> ToolOutput:
    path = normalise(file_path)
    if file_kind(path) == "video" and video_dependencies_available():
        return await watch(desk.files, path, Seconds(max(offset, 0), limit))
    place = await desk.files.place(path)
    try:
        page = await desk.files.read(path, max(offset, 0), limit)
    except ToolFailure as failure:
        if failure.code == "file_not_found":
            desk.seen.forget_below(place)
        raise
    if page.file_data is None:
        raise ToolFailure("io_error", f"no data returned for {path!r}")
    desk.seen.remember(place, page.version)
    if page.file_data.get("encoding") == "base64":
        return _binary(desk, path, page.file_data, (offset, limit))
    return ToolOutput(_text(desk, page, file_data_to_string(page.file_data), limit))


def _binary(desk: ToolContext, path: str, data: FileData, lines: tuple[int, int]) -> ToolOutput:
    content = file_data_to_string(data)
    if not content:
        return ToolOutput(EMPTY_FILE)
    text = text_inside(path, content)
    if text is not None:
        page = _page_of(text, *lines)
        return ToolOutput(_text(desk, page, file_data_to_string(page.file_data or {}), lines[1]))
    media = media_of(path, content)
    extra = {"read_file_path": path, "read_file_media_type": media.media_type}
    # LangGraph turns the blocks of a bare tool message into text where it does not know their type.
    update: dict[str, Any] | None = {} if media.kind in ("audio", "video") else None
    return ToolOutput([media_block(media, path, content)], extra=extra, update=update)


def _page_of(text: str, offset: int, limit: int) -> ReadResult:
    try:
        shown = window(text, max(offset, 0), limit)
    except BackendError as error:
        raise ToolFailure(error.code, error.text) from error
    return ReadResult(
        file_data=FileData(content=shown.text),
        total_lines=shown.total,
        start_line=shown.start,
        end_line=shown.end,
        next_offset=shown.next_offset,
        no_lines_requested=shown.no_lines_requested,
    )


def _text(desk: ToolContext, page: ReadResult, text: str, limit: int) -> str:
    if isinstance(page, NumberedRead):
        return _as_it_came(desk, page.numbered, limit)
    if page.no_lines_requested:
        return NO_LINES.format(limit=limit)
    start = page.start_line or 1
    end = page.end_line if page.end_line is not None else start + text.count("\n")
    if not text.strip() and (page.start_line is None or (start, end) == (1, page.total_lines)):
        return EMPTY_FILE
    window = Shown(
        text=text.removesuffix("\n"),
        start=start,
        end=end,
        total=page.total_lines,
        next_offset=page.next_offset,
    )
    return _fitted(window, desk)


def _as_it_came(desk: ToolContext, numbered: str, limit: int) -> str:
    tokens = desk.limits.result_tokens
    shown = "\n".join(numbered.split("\n")[: max(limit, 0)])
    return truncate(shown, tokens * CHARACTERS_PER_TOKEN, f"\n{CUT}") if tokens else shown


def _fitted(window: Shown, desk: ToolContext) -> str:
    tokens = desk.limits.result_tokens
    shown = _page(window, desk.read_format)
    if not tokens or len(shown) <= tokens * CHARACTERS_PER_TOKEN:
        return shown
    room = tokens * CHARACTERS_PER_TOKEN - 400
    lines = window.text.split("\n")
    fitting = _lines_that_fit(lines, window.start, room, desk.read_format)
    if fitting == 0:
        return _long_line(window, lines[0][:room], desk.read_format)
    end = window.start + fitting - 1
    cut = replace(window, text="\n".join(lines[:fitting]), end=end, next_offset=end)
    return f"{_page(cut, desk.read_format)}\n{CUT}"


def _lines_that_fit(lines: list[str], start: int, room: int, read_format: str) -> int:
    for count, line in enumerate(lines):
        room -= len(_numbered(line, start + count, read_format)) + 1
        if room < 0:
            return count
    return len(lines)


def _long_line(window: Shown, start_of_line: str, read_format: str) -> str:
    shown = _numbered(start_of_line, window.start, read_format)
    return f"{shown}\n[{_LONG_LINE.format(line=window.start)} Next offset {window.start}.]"


def _page(window: Shown, read_format: str) -> str:
    body = _numbered(window.text, window.start, read_format)
    total = "" if window.total is None else f" of {window.total}"
    if read_format == "header":
        onward = "" if window.next_offset is None else f" | next offset {window.next_offset}"
        return f"@@ lines {window.start}-{window.end}{total}{onward} @@\n{body}"
    whole = window.next_offset is None and window.start == 1
    return body if whole else f"{body}\n[{_where(window, total)}]"


def _where(window: Shown, total: str) -> str:
    said = f"Lines {window.start}-{window.end}{total}."
    if window.next_offset is None:
        return f"{said} End of file."
    left = "More lines remain" if window.total is None else f"{window.total - window.end} lines remain"
    return f"{said} {left}; next offset {window.next_offset}."


def _numbered(text: str, start: int, read_format: str) -> str:
    return text if read_format == "header" else number_lines(text, start)


_WHOLE = "Images, audio, video and PDF come whole."
_WHOLE_BUT_VIDEO = (
    "Images, audio and PDF come whole; a video comes as frames, and its offset and limit count seconds."
)
_DESCRIPTION = (
    f"Read a file, by default its first {DEFAULT_READ_LIMIT} lines. Each line is shown as number, tab, "
    f"text; the number is not part of "
    f"the file. {_WHOLE} Results too large to return are offloaded to a "
    "file that you can read here."
)
READ_FILE = ToolSpec("read_file", _DESCRIPTION, ReadFileSchema, _read_file)
READ_VIDEO_FILE = ToolSpec(
    "read_file",
    _DESCRIPTION.replace(_WHOLE, _WHOLE_BUT_VIDEO),
    ReadVideoFileSchema,
    _read_file,
)
