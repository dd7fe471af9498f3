"""Images, sound, film and documents as content blocks."""

from __future__ import annotations

from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from deepagents.backends.kinds import file_kind

_TYPES: Final = MappingProxyType(
    {
        "jpg": "image/jpeg",
        "tif": "image/tiff",
        "mov": "video/quicktime",
        "avi": "video/x-msvideo",
        "mpg": "video/mpeg",
        "mkv": "video/x-matroska",
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


def media_block(path: str, base64_content: str) -> tuple[dict[str, Any], str]:
    """Return the content block for a file's bytes, and its media type; the name's ending decides."""
    suffix = PurePosixPath(path).suffix.lstrip(".").lower()
    kind = file_kind(path)
    if kind in ("text", "file"):
        kind, fallback = "file", "application/octet-stream"
    else:
        fallback = f"{kind}/{suffix}"
    media_type = _TYPES.get(suffix, fallback)
    return {"type": kind, "base64": base64_content, "mime_type": media_type}, media_type
