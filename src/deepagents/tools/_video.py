"""Show a video as evenly spaced frames: needs the extra `video`."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from math import floor
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from deepagents._async import in_thread
from deepagents._paths import parent
from deepagents._text import format_size
from deepagents._values import field, recordclass, valueclass
from deepagents.backends.filedata import MAX_VIDEO_INPUT_BYTES
from deepagents.backends.handle import FileCalls
from deepagents.errors import HarnessError, ToolFailure
from deepagents.tools._tool import ToolOutput

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

SAMPLING_RATE: Final = 0.5
"""Frames shown for each second of video."""

_TOLERANCE: Final = 1e-6
"""Seconds by which rounding may move a moment."""
# A playlist under the name of a video would make the decoder open other files and addresses.
_ONLY_THIS_FILE: Final = MappingProxyType(
    {
        "protocol_whitelist": "none",
        "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,flv,mpeg,mpegts,mpegvideo,asf,ogg",
    }
)


class VideoExtractionError(HarnessError):
    """A video from which no frame could be taken."""


@valueclass
class Caps:
    """Limits of reading a part of a video."""

    frames: int = 64
    emitted_bytes: int = 4 * 1024 * 1024
    seconds: float = 10.0
    side: int = 4096
    long_side: int = 1920
    short_side: int = 1080
    quality: int = 85


@valueclass
class Frames:
    """Frames as content blocks, a line of text before each; `resume_at` is where a cap cut the window."""

    blocks: list[dict[str, Any]]
    count: int
    resume_at: int | None = None
    length: float | None = None


@cache
def video_dependencies_available() -> bool:
    """Return whether the extra `video` is installed."""
    return find_spec("av") is not None and find_spec("PIL") is not None


async def show_video(files: FileCalls, path: str, start: int, duration: int, name: str) -> ToolOutput:
    """Return frames of a part of a video, for a message of their own.

    `name` is what the model calls the file. Frames are decoded off the event loop, and a file that is too
    large is not even loaded.

    Raises:
        ToolFailure: when there is nothing to see; the text ends with the part that was asked for.
    """
    header = _header(name, start, duration)
    if duration <= 0:
        raise ToolFailure("invalid_argument", f"limit must be positive: it counts seconds. {header}")
    _check_size(await _find_size(files, path), header)
    content = await files.download(path)
    _check_size(len(content), header)
    try:
        frames = await in_thread(
            lambda: extract_video_frames(
                content, offset_seconds=start, duration_seconds=duration, sampling_rate=SAMPLING_RATE
            )
        )
    except VideoExtractionError as error:
        raise ToolFailure("invalid_encoding", f"{error}. {header}") from error
    counted = "1 frame" if frames.count == 1 else f"{frames.count} frames"
    length = "" if frames.length is None else f" The whole video has {frames.length:.0f}s."
    shown: list[str | dict[Any, Any]] = [{"type": "text", "text": f"{header}{length}"}, *frames.blocks]
    onward = ""
    if frames.resume_at is not None:
        onward = f" There is more: call read_file again with offset={frames.resume_at}."
        shown.append({"type": "text", "text": onward.strip()})
    return ToolOutput(
        f"{counted} of {name!r}, in the next message.{onward}",
        extra={"read_file_path": path, "read_file_frame_count": frames.count},
        extra_message=shown,
    )


def _header(path: str, start: int, duration: int) -> str:
    if start == 0:
        return f"Reading first {duration}s of {path!r} at {SAMPLING_RATE:g} fps."
    return f"Reading [{start:.3f}s, {start + duration:.3f}s) of {path!r} at {SAMPLING_RATE:g} fps."


async def _find_size(files: FileCalls, path: str) -> int:
    """Return a file's size as its directory lists it, 0 where it does not."""
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


def extract_video_frames(
    content: bytes,
    *,
    offset_seconds: float,
    duration_seconds: float,
    sampling_rate: float,
    caps: Caps | None = None,
) -> Frames:
    """Take the first frame at or after each moment of a window, `sampling_rate` moments a second.

    Raises:
        VideoExtractionError: for a window that makes no sense, and for bytes that give no picture.
    """
    _check(offset_seconds, duration_seconds, sampling_rate)
    import av
    from av.error import FFmpegError

    reader = _FrameReader(offset_seconds, duration_seconds, sampling_rate, caps or Caps())
    # Before PyAV 19, a title that is not UTF-8 makes a film unreadable unless it is told to replace it.
    lenient: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}
    try:
        with av.open(io.BytesIO(content), "r", options=dict(_ONLY_THIS_FILE), **lenient) as container:
            return reader.read_frames(container)
    except (OSError, FFmpegError) as error:
        raise VideoExtractionError(f"the video cannot be decoded: {type(error).__name__}") from error


def _check(offset: float, duration: float, rate: float) -> None:
    if offset < 0:
        raise VideoExtractionError(f"offset_seconds must not be negative, got {offset!r}")
    if duration <= 0:
        raise VideoExtractionError(f"duration_seconds must be positive, got {duration!r}")
    if rate <= 0:
        raise VideoExtractionError(f"sampling_rate must be positive, got {rate!r}")


@recordclass
class _FrameReader:
    offset: float
    duration: float
    rate: float
    caps: Caps
    blocks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    count: int = 0
    room: int = 0

    def read_frames(self, container: InputContainer) -> Frames:
        stream = next(iter(container.streams.video), None)
        if stream is None or not stream.time_base:
            raise VideoExtractionError("the file holds no video stream with a time base")
        # Before decoding: a small file can hold frames of gigabytes.
        self._check_sides(stream.width, stream.height)
        self.room = self.caps.emitted_bytes
        resume_at = self._take(stream, container)
        if not self.count and resume_at is None:
            raise VideoExtractionError("No frames decoded for window")
        length = None if container.duration is None else container.duration / 1_000_000
        return Frames(self.blocks, self.count, resume_at, length)

    def _take(self, stream: VideoStream, container: InputContainer) -> int | None:
        """Take what the caps allow; return the whole second at which to go on, if there is more."""
        deadline = time.monotonic() + self.caps.seconds
        target = self.offset
        for moment, frame in self._decode(stream, container):
            if moment >= self.offset + self.duration - _TOLERANCE:
                return None
            if moment >= target - _TOLERANCE:
                if self.count == self.caps.frames or not self._add(frame, moment):
                    return self._resume(target)
                target = self._next_target(moment)
            if time.monotonic() >= deadline:
                return self._out_of_time(target)
        return None

    def _decode(self, stream: VideoStream, container: InputContainer) -> Iterator[tuple[float, VideoFrame]]:
        base = float(stream.time_base or 1)
        start = stream.start_time or 0
        stream.thread_type = "AUTO"
        if self.offset > 0:
            # Goes to the key frame before; what lies between is decoded and passed over.
            container.seek(start + int(self.offset / base), stream=stream)
        for frame in container.decode(stream):
            if frame.pts is not None:
                yield (frame.pts - start) * base, frame

    def _next_target(self, moment: float) -> float:
        """Return the next target after a moment; a late frame does not move the targets."""
        return self.offset + (floor((moment - self.offset) * self.rate + _TOLERANCE) + 1) / self.rate

    def _out_of_time(self, target: float) -> int | None:
        if not self.count:
            raise VideoExtractionError(
                f"no frame was reached in {self.caps.seconds:g} s of decoding; ask for an earlier offset"
            )
        return None if target >= self.offset + self.duration - _TOLERANCE else self._resume(target)

    def _resume(self, target: float) -> int:
        # Always further than this call began, or a model would read the same part for ever.
        return max(floor(target + _TOLERANCE), floor(self.offset) + 1)

    def _add(self, frame: VideoFrame, moment: float) -> bool:
        shown = [{"type": "text", "text": f"Frame at t={clock(moment)}"}, self._picture(frame)]
        size = sum(len(value) for block in shown for value in block.values())
        if size > self.room:
            if not self.count:
                raise VideoExtractionError(f"one frame alone exceeds {self.caps.emitted_bytes} bytes")
            return False
        self.room -= size
        self.blocks += shown
        self.count += 1
        return True

    def _picture(self, frame: VideoFrame) -> dict[str, str]:
        from PIL import Image

        # Again for each frame: the size may change within a stream.
        self._check_sides(frame.width, frame.height)
        image: Image.Image = cast(Any, frame).to_image()
        long, short = self.caps.long_side, self.caps.short_side
        box = (long, short) if frame.width >= frame.height else (short, long)
        image.thumbnail(box, Image.Resampling.LANCZOS)
        file = io.BytesIO()
        image.save(file, "JPEG", quality=self.caps.quality)
        encoded = base64.b64encode(file.getbuffer()).decode("ascii")
        return {"type": "image", "base64": encoded, "mime_type": "image/jpeg"}

    def _check_sides(self, width: int, height: int) -> None:
        if max(width, height) > self.caps.side:
            raise VideoExtractionError(
                f"the frames have {width}x{height} pixels, over {self.caps.side} on a side"
            )


def clock(seconds: float) -> str:
    """Format a moment as `HH:MM:SS.mmm`."""
    minutes, rest = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest / 1000:06.3f}"
