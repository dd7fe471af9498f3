"""Hold one file at rest in state or in a store: its content, and what a change makes of it.

A file is `{"content": str, "encoding": "utf-8" | "base64", "created_at": iso, "modified_at": iso}`. An older
form, with a list of lines as content and no encoding, is read as well.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from deepagents._text import Replacement, keep_line_endings, replace_each, window
from deepagents.backends._bytes import BINARY_HEAD
from deepagents.backends._refusals import not_text, stale_version
from deepagents.backends.results import FileData, FileDownloadResponse, ReadResult, page_result
from deepagents.errors import BackendError

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
# Four characters carry three bytes; four more, so that the head is never one byte short.
_BASE64_HEAD: Final = BINARY_HEAD // 3 * 4 + 4
_SHORTEST_MEDIUM: Final = 12
MAX_VIDEO_INPUT_BYTES: Final = 1 << 30
_VERSION_LENGTH: Final = 16


def now() -> str:
    """Return the time as it is kept in files."""
    return datetime.now(UTC).isoformat()


def file_kind(path: str) -> FileKind:
    """Return what the ending of a name stands for; anything unknown is text."""
    dot = path.rfind(".")
    return KIND_OF_SUFFIX.get(path[dot:].lower(), "text") if dot >= 0 else "text"


def looks_binary(data: bytes) -> bool:
    """Return whether bytes are anything but UTF-8 text."""
    if b"\0" in data[:BINARY_HEAD]:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def create_file_data(content: str, created_at: str | None = None, encoding: str = "utf-8") -> FileData:
    """Make a file, modified now; without `created_at` it was created now, too."""
    moment = now()
    return {
        "content": content,
        "encoding": encoding,
        "created_at": created_at or moment,
        "modified_at": moment,
    }


def update_file_data(file_data: FileData, content: str) -> FileData:
    """Give a file new content; its encoding and its time of creation stay."""
    encoding = file_data.get("encoding", "utf-8")
    return create_file_data(content, file_data.get("created_at"), encoding)


def file_data_to_string(file_data: Mapping[str, Any]) -> str:
    """Return the content as one string.

    Raises:
        TypeError: when the content is neither a string nor a list of strings.
    """
    content: object = file_data.get("content")
    match content:
        case str():
            return content
        case list() if all(isinstance(line, str) for line in cast("list[object]", content)):
            return "\n".join(cast("list[str]", content))
        case _:
            kind = type(cast("object", content)).__name__
            raise TypeError(f"File content must be a string or a list of strings, got {kind}")


def file_data_to_bytes(file_data: FileData) -> bytes:
    """Return the bytes that a file stands for.

    Raises:
        TypeError: when the content has a wrong type.
        ValueError: when base64 content is not base64.
    """
    content = file_data_to_string(file_data)
    if is_base64(file_data):
        return base64.b64decode(content, validate=True)
    return content.encode("utf-8", "surrogatepass")


def is_base64(file_data: Mapping[str, Any]) -> bool:
    """Return whether the content is bytes in base64."""
    return file_data.get("encoding") == "base64"


def with_true_encoding(path: str, file_data: FileData) -> FileData:
    """Return a file whose encoding says base64 where its content is that.

    Older programs keep media as base64 text in records that say utf-8, or nothing.
    """
    if is_base64(file_data) or file_kind(path) == "text":
        return file_data
    content = text_or_none(file_data)
    return (
        file_data if content is None or not _is_base64_of_bytes(content) else _as_base64(file_data, content)
    )


def _as_base64(file_data: FileData, content: str) -> FileData:
    return {**file_data, "content": content, "encoding": "base64"}


def _is_base64_of_bytes(text: str) -> bool:
    try:
        # A short word is base64 too; no medium has fewer bytes than the 8 that a PNG file begins with.
        return len(text) >= _SHORTEST_MEDIUM and looks_binary(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def text_or_none(file_data: Mapping[str, Any]) -> str | None:
    """Return the content of a file, `None` when it is of a wrong type."""
    try:
        return file_data_to_string(file_data)
    except TypeError:
        return None


def file_size(file_data: FileData) -> int:
    """Return the size in bytes; 0 when the content cannot be read."""
    content = text_or_none(file_data)
    if content is None:
        return 0
    if is_base64(file_data):
        return size_of_base64(content)
    return len(content) if content.isascii() else len(content.encode("utf-8", "surrogatepass"))


def size_of_base64(content: str) -> int:
    """Return how many bytes stand in base64."""
    return len(content) // 4 * 3 - content[-2:].count("=")


def is_text(path: str, file_data: Mapping[str, Any]) -> bool:
    """Return whether a file reads as text: it is not media, and holds no bytes that are none.

    Raises:
        TypeError: when the content has a wrong type.
    """
    if is_base64(file_data) or file_kind(path) != "text":
        return False
    # The test that git and grep use too: text holds no zero byte near its beginning.
    return "\0" not in file_data_to_string(file_data)[:BINARY_HEAD]


def searchable_bytes(file_data: FileData) -> bytes:
    """Return the bytes to search: all of a file, but of a binary one only those that show it.

    Raises:
        TypeError: when the content has a wrong type, or base64 content is not base64.
    """
    content = file_data_to_string(file_data)
    if not is_base64(file_data):
        return content.encode("utf-8", "surrogatepass")
    try:
        head = base64.b64decode(content[:_BASE64_HEAD])
        return head if b"\0" in head[:BINARY_HEAD] else base64.b64decode(content)
    except ValueError as error:
        raise TypeError(f"File content must be base64: {error}") from error


def file_version(file_data: Mapping[str, Any]) -> str:
    """Return a short name for what a file holds now; equal content has an equal version."""
    kind = "base64" if is_base64(file_data) else "utf-8"
    # Half characters from older agents must not keep a file from having a version.
    content = file_data_to_string(file_data).encode("utf-8", "surrogatepass")
    return hashlib.sha256(kind.encode() + b"\0" + content).hexdigest()[:_VERSION_LENGTH]


def _check_version(path: str, current: FileData | None, expected: str | None) -> None:
    """Refuse a change to a file that is no longer what its writer saw.

    Raises:
        BackendError: `stale_version`.
    """
    if expected is None:
        return
    if current is None:
        raise stale_version(f"File '{path}'", "was deleted")
    if text_or_none(current) is None or file_version(current) != expected:
        raise stale_version(f"File '{path}'", "changed")


def make_written(path: str, current: FileData | None, content: str, expected_version: str | None) -> FileData:
    """Make a file of text, with the time of creation and the line endings of the one that it replaces.

    Text that is the base64 of bytes, in a file whose name means media, stands for those bytes.

    Raises:
        BackendError: `stale_version`, `invalid_encoding` for text that is not Unicode, `invalid_argument` for
            no text.
    """
    _check_version(path, current, expected_version)
    data = encode_text(content)
    if file_kind(path) != "text":
        return make_uploaded(path, current, base64.b64decode(data) if _is_base64_of_bytes(content) else data)
    before = None if current is None else text_or_none(current)
    if current is not None and before is not None and is_text(path, current):
        data = encode_text(keep_line_endings(before, content))
    return make_uploaded(path, current, data)


def make_edited(
    path: str,
    current: FileData,
    edits: Sequence[Replacement],
    expected_version: str | None,
) -> tuple[FileData, int]:
    """Replace exact texts; return the file and the number of replaced occurrences.

    Raises:
        BackendError: for text that is not there or not clear, a file that is not text, and one that changed.
    """
    # Before the version: that a file is not text stays true after it is read again.
    if text_or_none(current) is not None and not is_text(path, current):
        raise not_text()
    _check_version(path, current, expected_version)
    for edit in edits:
        encode_text(edit.old)
        encode_text(edit.new)
    content, count = replace_each(_readable(path, current), edits)
    return update_file_data(current, content), count


def make_appended(
    path: str, current: Mapping[str, Any] | None, added: str | bytes, modified_at: str | None = None
) -> FileData:
    """Make the file that has something more at its end.

    Raises:
        TypeError: when the content of the file has a wrong type.
        ValueError: when it should be base64, and is not.
    """
    moment = modified_at or now()
    before = current or {"content": "", "created_at": moment}
    text, encoding = file_data_to_string(before), "utf-8"
    if isinstance(added, str) and "\0" not in added and not is_base64(before) and file_kind(path) == "text":
        text += added
    else:
        data = added if isinstance(added, bytes) else added.encode()
        text, encoding = as_content(path, file_data_to_bytes(cast("FileData", before)) + data)
    return cast("FileData", {**before, "content": text, "encoding": encoding, "modified_at": moment})


def append_checked(path: str, current: FileData | None, content: str | bytes) -> FileData:
    """Make the file that has something more at its end, of what a caller gives.

    Raises:
        BackendError: `invalid_encoding` for text that is not Unicode, `invalid_argument` for neither text nor
            bytes, `io_error` when what is there cannot be read.
    """
    added = validate_addition(path, content)
    try:
        return make_appended(path, current, added)
    except (TypeError, ValueError) as error:
        raise BackendError("io_error", f"Error reading file '{path}': {error}") from error


def make_uploaded(path: str, current: FileData | None, content: bytes) -> FileData:
    """Make a file of bytes, with the time of creation of the one that it replaces.

    Raises:
        BackendError: `invalid_argument`, for what is not bytes.
    """
    text, encoding = as_content(path, validate_bytes(path, content))
    return create_file_data(text, current.get("created_at") if current else None, encoding)


def as_content(path: str, data: bytes) -> tuple[str, str]:
    """Return bytes as content and encoding: text as `utf-8`, media and other binaries as `base64`."""
    if file_kind(path) != "text" or looks_binary(data):
        return base64.b64encode(data).decode(), "base64"
    return data.decode(), "utf-8"


def read_download(path: str, current: FileData) -> FileDownloadResponse:
    """Return the bytes of a file."""
    try:
        return FileDownloadResponse(path, file_data_to_bytes(with_true_encoding(path, current)))
    except (TypeError, ValueError) as error:
        return FileDownloadResponse(path, error=f"Error reading file '{path}': {error}")


def read_page(path: str, current: FileData, offset: int, limit: int) -> ReadResult:
    """Return a window of a text file, or a media or other binary file whole, as base64.

    Raises:
        BackendError: `invalid_argument` past the end, `io_error` for content of a wrong type.
    """
    content, version = _readable(path, current), file_version(current)
    data = with_true_encoding(path, current)
    if is_base64(data):
        return ReadResult(file_data=_as_base64(data, content), version=version)
    if not is_text(path, data):
        encoded = base64.b64encode(file_data_to_bytes(data)).decode()
        return ReadResult(file_data=_as_base64(data, encoded), version=version)
    shown = window(content, int(offset), int(limit))
    return page_result({**data, "content": shown.text, "encoding": "utf-8"}, shown, version)


def _readable(path: str, data: FileData) -> str:
    try:
        return file_data_to_string(data)
    except TypeError as error:
        raise BackendError("io_error", f"Error reading file '{path}': {error}") from error


def encode_text(text: str) -> bytes:
    """Return text as UTF-8.

    Raises:
        BackendError: `invalid_encoding` for half characters, `invalid_argument` for what is not text.
    """
    if not isinstance(cast(object, text), str):
        raise BackendError("invalid_argument", f"Text is wanted here, not a {type(text).__name__}.")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BackendError(
            "invalid_encoding", f"The text cannot be written as UTF-8: {error.reason} at {error.start}."
        ) from error


def validate_bytes(path: str, content: bytes) -> bytes:
    """Return bytes as they are.

    Raises:
        BackendError: `invalid_argument`, for what is not bytes.
    """
    if isinstance(cast(object, content), (bytes, bytearray, memoryview)):
        return bytes(content)
    kind = type(content).__name__
    raise BackendError("invalid_argument", f"The content of '{path}' must be bytes, not a {kind}.")


def validate_addition(path: str, content: str | bytes) -> str | bytes:
    """Return what is to be added to a file.

    Raises:
        BackendError: `invalid_encoding` for text with half characters, `invalid_argument` for neither text
            nor bytes.
    """
    if not isinstance(content, str):
        return validate_bytes(path, content)
    encode_text(content)
    return content
