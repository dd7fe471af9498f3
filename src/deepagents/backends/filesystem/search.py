"""Find files by name and lines by text below a directory on disk.

Links are not followed. The result is the same with ripgrep and without: ripgrep only says which files are
worth opening, and the lines are always taken from them here.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from math import inf
from pathlib import Path

from deepagents._globs import GlobPattern, parse_glob
from deepagents._values import field, recordclass, replace, valueclass
from deepagents.backends._bytes import BINARY_HEAD, is_temporary, reason_of
from deepagents.backends._directory import Directory, FilesBelow
from deepagents.backends._query import Query, matches_in
from deepagents.backends._ripgrep import find_candidates
from deepagents.backends.filesystem.confined_dir import translate_os_errors
from deepagents.backends.filesystem.paths import AccessBelow, ResolvedPath
from deepagents.backends.filesystem.reading import format_time
from deepagents.backends.filesystem.walk import Unread, walk
from deepagents.backends.results import FileInfo, GlobResult, GrepMatch, GrepResult, describe_unread
from deepagents.errors import BackendError

_FIRST = 1 << 16
_BLOCK = 1 << 20
_MOST_LOOKED_THROUGH = 64 << 20
"""How far a file is looked through that is too large to show lines of."""
# A look at each of 100,000 files takes seconds; no model reads sizes of so many.
_MOST_DESCRIBED = 1000


@valueclass
class Search:
    """One search: what for, in which files, and how much of it. Each phase may take `seconds`.

    `allowed` is asked for paths from the start of the search; `passed_over` is such a path, of a directory.
    `ripgrep` is that program, where there is one to help.
    """

    query: Query
    glob: GlobPattern | None = None
    max_count: int | None = None
    largest: int = 10 << 20
    seconds: float = 15.0
    allowed: AccessBelow | None = None
    passed_over: str | None = None
    ripgrep: str | None = None


@recordclass
class Found:
    """Matching lines by their path from the start, and what kept the list from being complete."""

    matches: list[GrepMatch] = field(default_factory=list[GrepMatch])
    unread: list[Unread] = field(default_factory=list[Unread])
    truncated: bool = False


def glob(
    start: ResolvedPath, pattern: str, seconds: float, passed_over: str | None = None, most: float = inf
) -> GlobResult:
    """Find the files below a directory whose path matches, apart from those in a directory of it."""
    compiled = parse_glob(pattern)
    try:
        with (
            translate_os_errors(f"'{start.shown}'", "searching"),
            start.directory() as (directory, _, allowed),
        ):
            walked = walk(directory, seconds, compiled, start.is_regular_file, allowed, most)
            matches = _describe_all(directory, _without(walked.files, passed_over), start)
    except BackendError as error:
        if error.code in ("file_not_found", "not_a_directory"):
            return GlobResult(matches=[])
        raise
    found = GlobResult(matches=matches)
    if walked.timed_out:
        found.truncated, found.truncation_reason = True, "budget"
    elif walked.unread:
        found.truncated, found.truncation_reason = True, "unreadable"
    return found


def grep(start: ResolvedPath, wanted: Search) -> GrepResult:
    """Find lines in one file or in all files below a directory."""
    try:
        with translate_os_errors(f"'{start.shown}'", "searching"):
            found, is_file = _search(start, wanted)
    except BackendError as error:
        if error.code in ("file_not_found", "not_a_directory"):
            return GrepResult(matches=[])
        raise
    for match in found.matches:
        match["path"] = start.shown if is_file else start.below(match["path"])
    error = describe_unread(
        [
            f"{start.shown if is_file else start.describe_below(each.path)}: {each.reason}"
            for each in found.unread
        ]
    )
    return GrepResult(
        error=error, matches=found.matches, truncated=found.truncated, code="io_error" if error else None
    )


def _without(paths: Sequence[str], passed_over: str | None) -> Sequence[str]:
    if passed_over is None:
        return paths
    return [each for each in paths if not each.startswith(f"{passed_over}/")]


def _describe_all(directory: Directory, paths: Sequence[str], start: ResolvedPath) -> list[FileInfo]:
    """Describe found files; a long list goes without sizes and times, which cost a look at each file."""
    if len(paths) > _MOST_DESCRIBED:
        return [{"path": start.below(path), "is_dir": False} for path in paths]
    with FilesBelow(directory) as files:
        return [_describe(files, path, start) for path in paths]


def _describe(files: FilesBelow, path: str, start: ResolvedPath) -> FileInfo:
    info = FileInfo(path=start.below(path), is_dir=False)
    with suppress(OSError):
        about = files.stat(path)
        about = start.stat(path) if stat.S_ISLNK(about.st_mode) else about
        info["size"], info["modified_at"] = about.st_size, format_time(about)
    return info


def _search(start: ResolvedPath, wanted: Search) -> tuple[Found, bool]:
    with start.root.entry(start.parts, check=start.check_link_target) as entry:
        if entry.name and stat.S_ISREG(entry.stat().st_mode):
            start.check(entry.parts)
            found = Found()
            if wanted.glob is None or wanted.glob(entry.name):
                # By the open directory, so that the file cannot be replaced by a link after the check.
                _search_each(entry.above, [entry.name], wanted, found)
            return found, True
    with start.directory() as (directory, real, allowed):
        return search(directory, replace(wanted, allowed=allowed), real), False


def search(base: Directory, wanted: Search, real: Path | None = None) -> Found:
    """Search below `base`, which is at the path `real` when ripgrep shall help."""
    found = Found()
    if "\n" in wanted.query.pattern and not wanted.query.expression:
        return found
    if candidates := _ask_ripgrep(wanted, real):
        files, is_complete = candidates
        names = (os.fsdecode(name).replace(os.sep, "/") for name in files)
        paths = sorted(filter(wanted.glob, names) if wanted.glob else names)
        found.truncated = not is_complete
    else:
        walked = walk(base, wanted.seconds, wanted.glob, allowed=wanted.allowed)
        found.truncated, found.unread, paths = walked.timed_out, walked.unread, walked.files
    _search_each(base, _without(paths, wanted.passed_over), wanted, found)
    return found


def _ask_ripgrep(wanted: Search, real: Path | None) -> tuple[set[bytes], bool] | None:
    needle = wanted.query.needle
    if not (wanted.ripgrep and real and needle):
        return None
    # ripgrep reads all there is. Where a part is denied, its time would tell whether a guess is in there.
    if wanted.allowed is not None and not wanted.allowed.all_below(""):
        return None
    return find_candidates(wanted.ripgrep, real, needle, wanted.largest, time.monotonic() + wanted.seconds)


def _search_each(base: Directory, paths: Iterable[str], wanted: Search, found: Found) -> None:
    ends = time.monotonic() + wanted.seconds
    with FilesBelow(base) as files:
        for path in paths:
            is_late = time.monotonic() >= ends
            if is_late:
                found.truncated = True
            elif not is_temporary(path.rpartition("/")[2]):
                _search_one(files, path, wanted, found)
            is_full = wanted.max_count is not None and len(found.matches) >= wanted.max_count
            if found.truncated and (is_late or is_full):
                return


def _search_one(files: FilesBelow, path: str, wanted: Search, found: Found) -> None:
    try:
        fd = files.open(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        found.unread.append(Unread(path, reason_of(error)))
        return
    try:
        data = _read_at_most(fd, wanted.largest)
        if data is not None:
            _add_lines(data, path, wanted, found)
        elif _may_hold(fd, wanted.query.needle):
            size = os.fstat(fd).st_size
            reason = f"may match, but its {size:,} bytes are over the limit of {wanted.largest:,}"
            found.unread.append(Unread(path, reason))
    except IsADirectoryError:
        return
    except OSError as error:
        found.unread.append(Unread(path, reason_of(error)))
    finally:
        os.close(fd)


def _add_lines(data: bytes, path: str, wanted: Search, found: Found) -> None:
    room = None if wanted.max_count is None else wanted.max_count - len(found.matches)
    # One more than there is room for shows whether something was left out.
    matches = list(islice(matches_in(data, path, wanted.query), None if room is None else room + 1))
    found.truncated = found.truncated or (room is not None and len(matches) > room)
    found.matches += matches[:room]


def _read_at_most(fd: int, most: int) -> bytes | None:
    """Read a file whole, or return `None` when it holds more than `most` bytes."""
    # Most files are small: one read answers without asking for the size first.
    first = os.read(fd, min(_FIRST, most + 1))
    if len(first) <= most and len(first) < _FIRST:
        return first
    if os.fstat(fd).st_size > most:
        return None
    parts, size = [first], len(first)
    while size <= most and (part := os.read(fd, _BLOCK)):
        parts.append(part)
        size += len(part)
    return b"".join(parts) if size <= most else None


def _may_hold(fd: int, needle: bytes | None) -> bool:
    """Return whether a text file holds some bytes, or whether that takes too long to find out."""
    os.lseek(fd, 0, os.SEEK_SET)
    block = os.read(fd, _BLOCK)
    if b"\0" in block[:BINARY_HEAD]:
        return False
    kept, looked_through = b"", 0
    while needle is not None and needle not in kept + block:
        # What is searched for may lie across the border of two blocks.
        kept = block[-len(needle) + 1 :] if len(needle) > 1 else b""
        looked_through += len(block)
        block = os.read(fd, _BLOCK)
        if not block or looked_through >= _MOST_LOOKED_THROUGH:
            return bool(block)
    return True
