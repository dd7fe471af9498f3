"""Turn images, audio, video and documents into content blocks."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from shlex import quote
from types import MappingProxyType
from typing import Any, Final

from deepagents._text import format_size
from deepagents._values import valueclass
from deepagents.backends.filedata import file_kind, looks_binary, size_of_base64
from deepagents.errors import ToolFailure

MAX_INLINE_MEDIA_BYTES: Final = 10 * 1024 * 1024
"""Most bytes of one file that go to a model as they are."""

_HEAD: Final = 64
# Stricter than the decoder, which skips what is not base64: text must not pass for media.
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_TYPE_OF_ENDING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "jpg": "image/jpeg",
        "tif": "image/tiff",
        "mov": "video/quicktime",
        "avi": "video/x-msvideo",
        "flv": "video/x-flv",
        "mpg": "video/mpeg",
        "mkv": "video/x-matroska",
        "wmv": "video/x-ms-wmv",
        "3gpp": "video/3gpp",
        "mp3": "audio/mpeg",
        "m4a": "audio/mp4",
        "pdf": "application/pdf",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
)
"""Media types that are not just the kind and the ending. Source: the IANA media types registry."""

_SIGNATURES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypheix", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
    (4, b"ftypavif", "image/avif"),
    (0, b"%PDF-", "application/pdf"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf1", "audio/aac"),
    (0, b"fLaC", "audio/flac"),
    (0, b"OggS", "audio/ogg"),
    (8, b"AIFF", "audio/aiff"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftyp3gp", "video/3gpp"),
    (4, b"ftyp", "video/mp4"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"FLV\x01", "video/x-flv"),
    (0, b"\0\0\x01\xba", "video/mpeg"),
    (0, b"\x1aE\xdf\xa3", "video/x-matroska"),
    (0, b"0&\xb2u\x8ef\xcf\x11", "video/x-ms-wmv"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
)
"""How files of a type begin; the particular before the general."""

_CONTAINERS: Final[Mapping[str, Callable[[str], bool]]] = MappingProxyType(
    {
        "audio/ogg": lambda named: named == "video/ogg",
        "video/mp4": lambda named: named in ("audio/mp4", "video/quicktime", "video/3gpp"),
        "image/heif": lambda named: named == "image/heic",
        "video/x-matroska": lambda named: named == "video/webm",
        "application/zip": lambda named: "openxmlformats" in named,
        "application/x-ole-storage": lambda named: named == "application/vnd.ms-powerpoint",
    }
)
"""Types whose beginning leaves open what is inside: the named types that it may be."""


_OPAQUE: Final = frozenset(("application/octet-stream", "application/zip", "application/x-ole-storage"))


@valueclass
class Media:
    """The kind of a file, by its name and its first bytes."""

    kind: str
    media_type: str

    @property
    def is_opaque(self) -> bool:
        """True for bytes that no provider shows to a model."""
        return self.media_type in _OPAQUE


def describe_opaque(media: Media, shown: str, base64_content: str, command_tool: str) -> str:
    """Say what a file is that no model can be shown, and what to do; `command_tool` runs commands, if any."""
    size = format_size(size_of_base64(base64_content))
    command = f"{'unzip -l' if media.media_type == 'application/zip' else 'file'} {quote(shown)}"
    way_out = (
        f"Look into it, or convert it, by commands: call {command_tool} with {command!r}."
        if command_tool
        else "No tool here can look into it: say so, or ask for it as text."
    )
    return f"{shown!r} cannot be shown: its {size} are not UTF-8 text ({media.media_type}). {way_out}"


def media_of(path: str, base64_content: str) -> Media:
    """Return what a file is: what its name says, unless it says nothing or the bytes say otherwise."""
    named, seen = _by_name(path), _by_content(base64_content)
    may_be_as_named = seen is None or (seen in _CONTAINERS and _CONTAINERS[seen](named or ""))
    media_type = named if named and may_be_as_named else seen
    kind = (media_type or "").partition("/")[0]
    return Media(
        kind if kind in ("image", "audio", "video") else "file", media_type or "application/octet-stream"
    )


def media_block(media: Media, path: str, base64_content: str) -> dict[str, Any]:
    """Return the content block for a file's bytes.

    Raises:
        ToolFailure: `too_large`, over `MAX_INLINE_MEDIA_BYTES`.
    """
    size = size_of_base64(base64_content)
    if size > MAX_INLINE_MEDIA_BYTES:
        most = format_size(MAX_INLINE_MEDIA_BYTES)
        raise ToolFailure(
            "too_large",
            f"{path!r} ({media.media_type}) has {format_size(size)}, and at most {most} of one file can be "
            "shown. Make a smaller or shorter version of it, or extract the part that matters.",
        )
    return {"type": media.kind, "base64": base64_content, "mime_type": media.media_type}


def text_inside(path: str, base64_content: str) -> str | None:
    """Return the text of a file that only its name calls media, such as a saved error page; else `None`."""
    if file_kind(path) == "text" or _by_content(base64_content) is not None:
        return None
    data = _decode(base64_content)
    return None if looks_binary(data) else data.decode()


def media_in_text(path: str, text: str) -> str | None:
    """Return the base64 of media that is kept as text, as the oldest agents did; else `None`."""
    content = text.strip()
    if file_kind(path) == "text" or not _BASE64.fullmatch(content):
        return None
    return content if _by_content(content) else None


def _by_name(path: str) -> str | None:
    suffix = PurePosixPath(path).suffix.lstrip(".").lower()
    kind = file_kind(path)
    return _TYPE_OF_ENDING.get(suffix) or (None if kind in ("text", "file") else f"{kind}/{suffix}")


def _by_content(base64_content: str) -> str | None:
    head = _decode(base64_content[: _HEAD * 4])
    for at, sign, media_type in _SIGNATURES:
        if head.startswith(sign, at):
            return media_type
    return None


def _decode(base64_content: str) -> bytes:
    try:
        return base64.b64decode(base64_content)
    except ValueError as error:
        raise ToolFailure("invalid_encoding", f"The file is kept as base64, and is not: {error}.") from error
