"""Images, sound, film and documents as content blocks."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

_KINDS = {
    "image": "png jpeg jpg webp gif heic heif bmp tiff",
    "video": "mp4 mpeg mov avi flv mpg webm wmv 3gpp mkv",
    "audio": "wav mp3 aiff aac ogg flac m4a",
}
_KIND_OF = {suffix: kind for kind, suffixes in _KINDS.items() for suffix in suffixes.split()}
_TYPE_OF = {
    "jpg": "image/jpeg",
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


def media_block(path: str, base64_content: str) -> tuple[dict[str, Any], str]:
    """Return the content block for a file's bytes, and its media type; the name's ending decides."""
    suffix = PurePosixPath(path).suffix.lstrip(".").lower()
    kind = _KIND_OF.get(suffix, "file")
    media_type = _TYPE_OF.get(suffix) or (
        f"{kind}/{suffix}" if suffix in _KIND_OF else "application/octet-stream"
    )
    return {"type": kind, "base64": base64_content, "mime_type": media_type}, media_type
