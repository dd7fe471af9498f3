"""Read a page of text, or images and documents as content blocks."""

from __future__ import annotations

from typing import Any, Final, cast

from pydantic import BaseModel, Field

from deepagents._paths import normalise
from deepagents._text import number_lines, split_lines, truncate, window
from deepagents._text.anchors import anchor_lines
from deepagents._values import replace, valueclass
from deepagents.backends.filedata import file_data_to_string, file_kind
from deepagents.backends.foreign.answers import NumberedRead
from deepagents.backends.results import EMPTY_FILE, ReadResult, page_result
from deepagents.errors import BackendError, ToolFailure
from deepagents.tools._media import describe_opaque, media_block, media_in_text, media_of, text_inside
from deepagents.tools._offered import if_offered
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec
from deepagents.tools._video import show_video, video_dependencies_available

DEFAULT_READ_OFFSET: Final = 0
DEFAULT_READ_LIMIT: Final = 100

NO_LINES: Final = "System reminder: no lines were read, because limit was {limit}"
CUT: Final = "The page was cut to fit: call read_file again from the next offset, or with a smaller limit."
_LONG_LINE: Final = "Line {line} alone is longer than one result may be; its start is shown.{search}"
_NOTES: Final = 400
"""Characters that a result keeps free for notes about the page."""
_LEAST: Final = 200
"""Characters of text that are shown at least, however low the limit: otherwise reading would never get on."""


@valueclass
class Page:
    """The lines to show: counted from 1, both ends included; `next_offset` from 0.

    `before` is the line before them, which their anchors depend on.
    """

    text: str
    start: int
    end: int
    total: int | None
    next_offset: int | None
    before: str = ""


class ReadFileSchema(BaseModel):
    """The arguments of `read_file`."""

    file_path: str = Field(description="Absolute file path.")
    offset: int = Field(default=DEFAULT_READ_OFFSET, description="First line, counted from 0.")
    limit: int = Field(default=DEFAULT_READ_LIMIT, description="Number of lines.")


class ReadVideoFileSchema(ReadFileSchema):
    """The arguments of `read_file` where videos are shown as frames."""

    offset: int = Field(
        default=DEFAULT_READ_OFFSET, description="First line, counted from 0; of a video, first second."
    )
    limit: int = Field(default=DEFAULT_READ_LIMIT, description="Number of lines; of a video, seconds.")


async def _read_file(
    context: ToolContext,
    file_path: str,
    offset: int = DEFAULT_READ_OFFSET,
    limit: int = DEFAULT_READ_LIMIT,
) -> ToolOutput:
    path, offset = normalise(file_path), max(offset, 0)
    if file_kind(path) == "video" and video_dependencies_available():
        return await show_video(context.files, path, offset, limit, context.paths.show(path))
    real_path = await context.files.real_path(path)
    try:
        found = await context.files.read(path, offset, limit)
    except ToolFailure as failure:
        if failure.code == "file_not_found":
            # Otherwise writing the file anew would be refused as a change since it was read.
            context.versions.forget_below(real_path)
        raise
    if found.file_data is None:
        raise ToolFailure("io_error", f"no data returned for {path!r}")
    context.versions.remember(real_path, found.version)
    content = file_data_to_string(found.file_data)
    if found.file_data.get("encoding") == "base64":
        return _show_bytes(context, path, content, offset, limit)
    media = None if found.next_offset or (found.start_line or 1) > 1 else media_in_text(path, content)
    if media is not None:
        return _show_media(context, path, media)
    before = ""
    if context.read_format == "anchors" and (found.start_line or 1) > 1:
        above = await context.files.read(path, cast("int", found.start_line) - 2, 1)
        before = "".join(split_lines(file_data_to_string(above.file_data or {"content": ""})))
    return ToolOutput(_show_text(context, found, content, limit, before))


def _show_bytes(context: ToolContext, path: str, content: str, offset: int, limit: int) -> ToolOutput:
    """Show what is kept as base64: media, unless only the name says that it is."""
    if not content:
        return ToolOutput(EMPTY_FILE)
    text = text_inside(path, content)
    if text is None:
        return _show_media(context, path, content)
    media = media_in_text(path, text)
    if media is not None:
        return _show_media(context, path, media)
    try:
        lines = window(text, offset, limit)
    except BackendError as error:
        raise ToolFailure(error.code, error.text) from error
    return ToolOutput(_show_text(context, page_result(None, lines), lines.text, limit))


def _show_media(context: ToolContext, path: str, base64_content: str) -> ToolOutput:
    media = media_of(path, base64_content)
    extra = {"read_file_path": path, "read_file_media_type": media.media_type}
    if media.is_opaque:
        tool = if_offered("execute", "execute") if context.files.capabilities(path).execute else ""
        return ToolOutput(describe_opaque(media, context.paths.show(path), base64_content, tool), extra=extra)
    # LangGraph turns the blocks of a bare tool message into text where it does not know their type.
    update: dict[str, Any] | None = {} if media.kind in ("audio", "video") else None
    return ToolOutput([media_block(media, path, base64_content)], extra=extra, update=update)


def _show_text(context: ToolContext, found: ReadResult, text: str, limit: int, before: str = "") -> str:
    if isinstance(found, NumberedRead):
        return _cut_numbered(context, found.numbered, limit)
    if found.no_lines_requested:
        return NO_LINES.format(limit=limit)
    start = found.start_line or 1
    end = found.end_line if found.end_line is not None else start + text.count("\n")
    if not text.strip() and (found.start_line is None or (start, end) == (1, found.total_lines)):
        return EMPTY_FILE
    # A backend may leave out the newline of a last line, and a blank line must not go with it.
    shown = text.removesuffix("\n") if text.count("\n") > end - start else text
    page = Page(shown, start, end, found.total_lines, found.next_offset, before)
    return _fit(context, page)


def _cut_numbered(context: ToolContext, numbered: str, limit: int) -> str:
    """Cut a page that an older backend has numbered itself."""
    most = context.limits.result_characters
    lines = "\n".join(numbered.split("\n")[: max(limit, 0)])
    return lines if most is None else truncate(lines, max(most, _LEAST + len(CUT)), f"\n{CUT}")


def _fit(context: ToolContext, page: Page) -> str:
    """Render the page, or as many whole lines of it as a result may have."""
    most, read_format = context.limits.result_characters, context.read_format
    rendered = _render(page, read_format)
    if most is None or len(rendered) <= most:
        return rendered
    room = max(most - _NOTES, _LEAST)
    lines = page.text.split("\n")
    fitting = _count_fitting(lines, page.start, room, read_format)
    if fitting == len(lines):
        return rendered
    if fitting == 0:
        start_of_line = _number(lines[0], page.start, read_format, page.before)[:room]
        search = if_offered("grep", " Use grep to find text in it.")
        note = _LONG_LINE.format(line=page.start, search=search)
        return f"{start_of_line}\n[{note} Next offset {page.start}.]"
    end = page.start + fitting - 1
    cut = replace(page, text="\n".join(lines[:fitting]), end=end, next_offset=end)
    return f"{_render(cut, read_format)}\n{CUT}"


def _count_fitting(lines: list[str], start: int, room: int, read_format: str) -> int:
    for count, line in enumerate(lines):
        room -= len(_number(line, start + count, read_format)) + 1
        if room < 0:
            return count
    return len(lines)


def _render(page: Page, read_format: str) -> str:
    body = _number(page.text, page.start, read_format, page.before)
    total = "" if page.total is None else f" of {page.total}"
    if read_format == "header":
        onward = "" if page.next_offset is None else f" | next offset {page.next_offset}"
        return f"@@ lines {page.start}-{page.end}{total}{onward} @@\n{body}"
    whole = page.next_offset is None and page.start == 1
    return body if whole else f"{body}\n[{_describe_position(page, total)}]"


def _describe_position(page: Page, total: str) -> str:
    lines = f"Lines {page.start}-{page.end}{total}."
    if page.next_offset is None:
        return f"{lines} End of file."
    left = "More lines remain" if page.total is None else f"{page.total - page.end} lines remain"
    return f"{lines} {left}; next offset {page.next_offset}."


def _number(text: str, start: int, read_format: str, before: str = "") -> str:
    match read_format:
        case "header":
            return text
        case "anchors":
            return anchor_lines(text, start, before)
        case _:
            return number_lines(text, start)


_NUMBERED: Final = "Each line is shown as number, tab, text; the number is not part of the file."
_ANCHORED: Final = "Each line is shown as number:hash|text; what stands before the text is its anchor."
_WHOLE: Final = "Images, audio, video and PDF come whole."
_WHOLE_BUT_VIDEO: Final = (
    "Images, audio and PDF come whole; a video comes as frames, and its offset and limit count seconds."
)
READ_FILE = ToolSpec(
    "read_file",
    f"Read a file, by default its first {DEFAULT_READ_LIMIT} lines. {_NUMBERED} {_WHOLE} Results too large "
    "to return are offloaded to a file that you can read here.",
    ReadFileSchema,
    _read_file,
    effect="read",
    path_argument="file_path",
    offload_result=False,
    summary_arguments=("file_path",),
    result_unit="line",
)
READ_VIDEO_FILE = replace(
    READ_FILE,
    description=READ_FILE.description.replace(_WHOLE, _WHOLE_BUT_VIDEO),
    args=ReadVideoFileSchema,
)


def with_anchors(spec: ToolSpec) -> ToolSpec:
    """Return the tool as it is described where it shows anchors."""
    return replace(spec, description=spec.description.replace(_NUMBERED, _ANCHORED))
