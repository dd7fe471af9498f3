"""Read files and list directories."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from deepagents._text import format_size
from deepagents.backends._directory import is_temporary
from deepagents.backends.filesystem.atomic import version_of
from deepagents.backends.filesystem.faults import code_of, explain, told
from deepagents.backends.filesystem.line_marks import LineMarks
from deepagents.backends.filesystem.pages import is_binary, read_all, read_head, read_page
from deepagents.backends.filesystem.targets import Target, printable
from deepagents.backends.kinds import FileKind, file_kind
from deepagents.backends.results import FileData, FileInfo, LsResult, ReadResult
from deepagents.errors import BackendError

MAX_VIDEO_INPUT_BYTES = 1 << 30


def read(target: Target, offset: int, limit: int, largest: int, marks: LineMarks) -> ReadResult:
    """Read a page of text, or anything else whole as base64."""
    with told(f"File '{target.shown}'", "reading", target.hint), opened_file(target) as fd:
        about = os.fstat(fd)
        kind = file_kind(target.shown)
        if kind != "text" or is_binary(read_head(fd)):
            _check_size(about.st_size, kind, largest)
            return ReadResult(file_data=_data(read_all(fd), about), version=version_of(about))
        page = read_page(fd, int(offset), int(limit), largest, marks)
    return ReadResult(
        file_data=FileData(content=page.text, encoding="utf-8", modified_at=moment(about)),
        total_lines=page.total,
        start_line=page.start,
        end_line=page.end,
        next_offset=page.next_offset,
        no_lines_requested=page.no_lines_requested,
        version=version_of(about),
    )


def download(target: Target) -> bytes:
    """Read a file whole, as it is."""
    with told(f"File '{target.shown}'", "reading"), opened_file(target) as fd:
        return read_all(fd)


@contextmanager
def opened_file(target: Target) -> Generator[int]:
    """Open a regular file to read."""
    with target.place() as place:
        check_regular(place.stat(), target.shown)
        fd = place.above.open(place.name)
        try:
            check_regular(os.fstat(fd), target.shown)
            yield fd
        finally:
            os.close(fd)


def check_regular(about: os.stat_result, shown: str) -> None:
    """Refuse what is not a file with content: directories, pipes, devices.

    Raises:
        BackendError: `is_directory` or `invalid_path`.
    """
    if stat.S_ISDIR(about.st_mode):
        raise BackendError("is_directory", f"File '{shown}' not found: it is a directory. List it with ls.")
    if not stat.S_ISREG(about.st_mode):
        raise BackendError("invalid_path", f"'{shown}' is not a regular file, so it has no content to use.")


def ls(target: Target) -> LsResult:
    """List a directory. Links show as what they lead to, and not at all when they lead nowhere or out."""
    entries: list[FileInfo] = []
    problems: list[str] = []
    try:
        with target.directory() as (directory, _, inside), directory.scan() as found:
            for entry in (each for each in found if inside is None or inside(each.name)):
                _list(entry, target, entries, problems)
    except OSError as error:
        if not entries:
            raise _cannot_list(target, error) from error
        problems.append(f"listing aborted: {explain(error)}")
    entries.sort(key=lambda entry: entry["path"])
    said = "\n".join(sorted(problems))
    return LsResult(error=said or None, entries=entries, code="io_error" if said else None)


def _list(entry: os.DirEntry[str], target: Target, entries: list[FileInfo], problems: list[str]) -> None:
    if is_temporary(entry.name):
        return
    try:
        about = target.stat(entry.name) if entry.is_symlink() else entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as error:
        if not entry.is_symlink():
            problems.append(f"child error: {printable(entry.name)}: {explain(error)}")
        return
    if stat.S_ISDIR(about.st_mode):
        path = target.below(entry.name) + "/"
        entries.append(FileInfo(path=path, is_dir=True, size=0, modified_at=moment(about)))
    elif stat.S_ISREG(about.st_mode):
        path = target.below(entry.name)
        entries.append(FileInfo(path=path, is_dir=False, size=about.st_size, modified_at=moment(about)))


def _cannot_list(target: Target, error: OSError) -> BackendError:
    code = code_of(error)
    match code:
        case "file_not_found":
            return BackendError(code, f"Path '{target.shown}': path_not_found.{target.hint}")
        case "not_a_directory":
            return BackendError(code, f"Path '{target.shown}': not_a_directory")
        case _:
            return BackendError(code, f"Cannot list '{target.shown}': {explain(error)}")


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


def _data(content: bytes, about: os.stat_result) -> FileData:
    encoded = base64.b64encode(content).decode("ascii")
    return FileData(content=encoded, encoding="base64", modified_at=moment(about))


def moment(about: os.stat_result) -> str:
    """Say when a file was last changed."""
    return datetime.fromtimestamp(about.st_mtime, UTC).isoformat()
