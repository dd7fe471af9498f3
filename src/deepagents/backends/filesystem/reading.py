"""Read files and list directories."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from deepagents._text import format_size, window
from deepagents.backends._bytes import code_of, is_binary, is_temporary, version_of
from deepagents.backends._refusals import not_a_file, not_listable
from deepagents.backends.filedata import MAX_VIDEO_INPUT_BYTES, FileKind, file_kind
from deepagents.backends.filesystem.buffers import Buffers, find_unsaved, text_version
from deepagents.backends.filesystem.confined_dir import explain, translate_os_errors
from deepagents.backends.filesystem.pages import LineMarks, read_all, read_first, read_head, read_page
from deepagents.backends.filesystem.paths import ResolvedPath
from deepagents.backends.results import FileData, FileInfo, LsResult, ReadResult, page_result
from deepagents.errors import BackendError


def read(
    path: ResolvedPath,
    offset: int,
    limit: int,
    largest: int,
    marks: LineMarks,
    buffers: Buffers | None = None,
) -> ReadResult:
    """Read a page of text, or anything else whole as base64."""
    with translate_os_errors(f"File '{path.shown}'", "reading", path.hint), open_file(path) as fd:
        about = os.fstat(fd)
        kind = file_kind(path.shown)
        if kind != "text" or is_binary(read_head(fd)):
            _check_size(about.st_size, kind, largest)
            content = base64.b64encode(read_all(fd)).decode("ascii")
            file = FileData(content=content, encoding="base64", modified_at=format_time(about))
            return ReadResult(file_data=file, version=version_of(about))
        unsaved = None
        if buffers and about.st_size <= largest:
            unsaved = find_unsaved(buffers, _real(path), lambda: read_all(fd))
            os.lseek(fd, 0, os.SEEK_SET)
        if unsaved is not None:
            page = window(unsaved, int(offset), int(limit))
            file = FileData(content=page.text, encoding="utf-8", modified_at=format_time(about))
            return page_result(file, page, text_version(unsaved))
        page = read_page(fd, int(offset), int(limit), largest, marks)
    file = FileData(content=page.text, encoding="utf-8", modified_at=format_time(about))
    return page_result(file, page, version_of(about))


def download(path: ResolvedPath, most: int | None = None, buffers: Buffers | None = None) -> bytes:
    """Read a file as it is, whole or so many bytes of it; of one that a buffer differs from, the buffer."""
    with translate_os_errors(f"File '{path.shown}'", "reading"), open_file(path) as fd:
        if most is not None:
            return read_first(fd, most)
        content = read_all(fd)
        if buffers and file_kind(path.shown) == "text" and not is_binary(content):
            unsaved = find_unsaved(buffers, _real(path), lambda: content)
            return content if unsaved is None else unsaved.encode("utf-8", "surrogatepass")
        return content


def _real(path: ResolvedPath) -> Path:
    return path.root.path_of(path.real_parts())


@contextmanager
def open_file(path: ResolvedPath) -> Generator[int]:
    """Open a regular file to read."""
    with path.entry() as entry:
        # Before opening: opening a device can itself have an effect, such as rewinding a tape.
        check_regular(entry.stat(), path.shown)
        fd = entry.above.open(entry.name)
        try:
            # After opening: another process may have put something else there in between.
            check_regular(os.fstat(fd), path.shown)
            yield fd
        finally:
            os.close(fd)


def check_regular(about: os.stat_result, shown: str) -> None:
    """Refuse what is not a file with content: directories, pipes, devices.

    Raises:
        BackendError: `is_directory` or `invalid_path`.
    """
    if stat.S_ISDIR(about.st_mode):
        raise not_a_file(f"File '{shown}'")
    if not stat.S_ISREG(about.st_mode):
        raise BackendError("invalid_path", f"'{shown}' is not a regular file, so it has no content to use.")


def ls(path: ResolvedPath, most: int | None = None) -> LsResult:
    """List a directory. Links show as what they lead to, and not at all when they lead nowhere or out.

    With `most`, only so many of its entries are looked at.
    """
    entries: list[FileInfo] = []
    problems: list[str] = []
    try:
        with path.directory() as (directory, _, allowed), directory.scan() as found:
            for each in islice((each for each in found if allowed is None or allowed(each.name)), most):
                _list_entry(each, path, entries, problems)
    except OSError as error:
        if not entries:
            raise _cannot_list(path, error) from error
        problems.append(f"listing aborted: {explain(error)}")
    entries.sort(key=lambda entry: entry["path"])
    error = "\n".join(sorted(problems)) or None
    return LsResult(error=error, entries=entries, code="io_error" if error else None)


def _list_entry(
    entry: os.DirEntry[str], directory: ResolvedPath, entries: list[FileInfo], problems: list[str]
) -> None:
    if is_temporary(entry.name):
        return
    try:
        # Links are walked by our own resolver, because the system's would follow them out of the root.
        about = directory.stat(entry.name) if entry.is_symlink() else entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as error:
        if not entry.is_symlink():
            problems.append(f"child error: {directory.describe_below(entry.name)}: {explain(error)}")
        return
    is_directory = stat.S_ISDIR(about.st_mode)
    if is_directory or stat.S_ISREG(about.st_mode):
        path = directory.below(entry.name) + "/" * is_directory
        size = 0 if is_directory else about.st_size
        entries.append(FileInfo(path=path, is_dir=is_directory, size=size, modified_at=format_time(about)))


def _cannot_list(path: ResolvedPath, error: OSError) -> BackendError:
    code = code_of(error)
    if code == "file_not_found" or code == "not_a_directory":
        return not_listable(path.shown, code, path.hint)
    return BackendError(code, f"Cannot list '{path.shown}': {explain(error)}")


def _check_size(size: int, kind: FileKind, largest: int) -> None:
    if kind == "video" and size > MAX_VIDEO_INPUT_BYTES:
        raise BackendError(
            "too_large", f"Video file exceeds maximum input size of {MAX_VIDEO_INPUT_BYTES} bytes"
        )
    if kind != "video" and size > largest:
        raise BackendError(
            "too_large",
            f"The file is binary and has {format_size(size)}, over the limit of {format_size(largest)}. "
            "The limit is the backend's max_file_size_mb.",
        )


def format_time(about: os.stat_result) -> str:
    """Return when a file was last changed."""
    return datetime.fromtimestamp(about.st_mtime, UTC).isoformat()
