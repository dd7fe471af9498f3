"""What kind of file a name or its bytes mean."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

FileKind = Literal["text", "image", "audio", "video", "file"]

_SUFFIXES: dict[FileKind, str] = {
    "image": "png jpg jpeg webp gif heic heif bmp tif tiff",
    "video": "mp4 mpeg mov avi flv mpg webm wmv 3gpp mkv",
    "audio": "wav mp3 aiff aac ogg flac m4a",
    "file": "pdf ppt pptx docx xlsx",
}
KIND_OF_SUFFIX: Final[Mapping[str, FileKind]] = MappingProxyType(
    {f".{suffix}": kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
)
BINARY_HEAD: Final = 8192
"""How far bytes are looked into to tell text from anything else."""


def file_kind(path: str) -> FileKind:
    """Return what the ending of a name stands for; anything unknown is text."""
    dot = path.rfind(".")
    return KIND_OF_SUFFIX.get(path[dot:].lower(), "text") if dot >= 0 else "text"


def looks_binary(data: bytes) -> bool:
    """Tell whether bytes are anything but UTF-8 text."""
    if b"\0" in data[:BINARY_HEAD]:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def as_content(path: str, data: bytes) -> tuple[str, str]:
    """Return bytes as content and encoding: text as `utf-8`, media and other binaries as `base64`."""
    if file_kind(path) != "text" or looks_binary(data):
        return base64.b64encode(data).decode(), "base64"
    return data.decode(), "utf-8"
