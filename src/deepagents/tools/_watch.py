"""A film as `read_file` shows it: what the tool says, and the frames for a message of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deepagents._async import in_thread
from deepagents._paths import parent
from deepagents._text import format_size
from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.tools._tool import ToolOutput
from deepagents.tools._video import (
    MAX_VIDEO_INPUT_BYTES,
    SAMPLING_RATE,
    Frames,
    VideoExtractionError,
    extract_video_frames,
)


@dataclass(frozen=True, slots=True)
class Seconds:
    """A part of a film."""

    start: int
    duration: int

    def header(self, path: str) -> str:
        """Say which part this is."""
        if self.start == 0:
            return f"Reading first {self.duration}s of {path!r} at {SAMPLING_RATE:g} fps."
        end = self.start + self.duration
        return f"Reading [{self.start:.3f}s, {end:.3f}s) of {path!r} at {SAMPLING_RATE:g} fps."


async def watch(files: Files, path: str, part: Seconds) -> ToolOutput:
    """Take frames out of a film, off the event loop; one that is too large is not even loaded.

    Raises:
        ToolFailure: when there is nothing to see; the text ends with the part that was asked for.
    """
    header = part.header(path)
    if part.duration <= 0:
        raise ToolFailure("invalid_argument", f"limit must be positive: it counts seconds. {header}")
    _check_size(await _listed_size(files, path), header)
    content = await files.download(path)
    _check_size(len(content), header)
    try:
        frames = await in_thread(lambda: _frames(content, part))
    except VideoExtractionError as error:
        raise ToolFailure("invalid_encoding", f"{error}. {header}") from error
    return _reply(path, header, frames)


async def _listed_size(files: Files, path: str) -> int:
    """Return a file's size as its directory tells it, 0 where that does not tell."""
    try:
        listed = await files.ls(parent(path))
    except ToolFailure:
        return 0
    return next((each.get("size", 0) for each in listed.entries or [] if each["path"] == path), 0)


def _check_size(size: int, header: str) -> None:
    if size > MAX_VIDEO_INPUT_BYTES:
        most = format_size(MAX_VIDEO_INPUT_BYTES)
        raise ToolFailure(
            "too_large", f"The video has {format_size(size)}, over the limit of {most}. {header}"
        )


def _frames(content: bytes, part: Seconds) -> Frames:
    return extract_video_frames(
        content,
        offset_seconds=part.start,
        duration_seconds=part.duration,
        sampling_rate=SAMPLING_RATE,
    )


def _reply(path: str, header: str, frames: Frames) -> ToolOutput:
    counted = "1 frame" if frames.count == 1 else f"{frames.count} frames"
    length = "" if frames.length is None else f" The whole video has {frames.length:.0f}s."
    shown: list[str | dict[Any, Any]] = [{"type": "text", "text": f"{header}{length}"}, *frames.blocks]
    onward = ""
    if frames.resume_at is not None:
        onward = f" There is more: call read_file again with offset={frames.resume_at}."
        shown.append({"type": "text", "text": onward.strip()})
    return ToolOutput(
        f"{counted} of {path!r}, in the next message.{onward}",
        extra={"read_file_path": path, "read_file_frame_count": frames.count},
        beside=shown,
    )
