"""Search the files below a directory, line by line."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from deepagents._globs import GlobPattern
from deepagents.backends._bytes import BINARY_HEAD, is_temporary, reason_of
from deepagents.backends._directory import Directory, FilesBelow
from deepagents.backends._search.lines import Line, Query, lines_in
from deepagents.backends._search.ripgrep import Candidates, find_candidates
from deepagents.backends._search.walk import Known, Unread, walk

_FIRST = 1 << 16
_BLOCK = 1 << 20
_MOST_LOOKED_THROUGH = 64 << 20
"""How far a file is looked through that is too large to show lines of."""


class Hit(NamedTuple):
    """A matching line and the path of its file from the start."""

    path: str
    line: Line


@dataclass(frozen=True, slots=True)
class Search:
    """One search: what for, in which files, and how much of it. Each phase may take `seconds`.

    `allowed` is asked for paths from the start of the search.
    """

    query: Query
    glob: GlobPattern | None = None
    max_count: int | None = None
    largest: int = 10 << 20
    seconds: float = 15.0
    allowed: Known | None = None


@dataclass(slots=True)
class Found:
    """Matching lines by path and number, and what kept the list from being complete."""

    hits: list[Hit] = field(default_factory=list[Hit])
    unread: list[Unread] = field(default_factory=list[Unread])
    truncated: bool = False


def search(base: Directory, wanted: Search, ripgrep: str | None = None, real: Path | None = None) -> Found:
    """Search below `base`, which is at the path `real` when ripgrep shall help."""
    found = Found()
    if "\n" in wanted.query.pattern and not wanted.query.expression:
        return found
    if candidates := _find_candidates(wanted, ripgrep, real):
        found.truncated = not candidates.is_complete
        paths = sorted(filter(wanted.glob, candidates.files) if wanted.glob else candidates.files)
    else:
        walked = walk(base, wanted.seconds, wanted.glob, allowed=wanted.allowed)
        found.truncated, found.unread, paths = walked.timed_out, walked.unread, walked.files
    _search_each(base, paths, wanted, found)
    return found


def search_file(base: Directory, name: str, wanted: Search) -> Found:
    """Search one file of a directory, when it passes the filter."""
    found = Found()
    if wanted.glob is None or wanted.glob(name):
        _search_each(base, [name], wanted, found)
    return found


def _find_candidates(wanted: Search, ripgrep: str | None, real: Path | None) -> Candidates | None:
    needle = wanted.query.needle
    if not (ripgrep and real and needle):
        return None
    # ripgrep reads all there is. Where a part is denied, its time would tell whether a guess is in there.
    if wanted.allowed is not None and not wanted.allowed.all_below(""):
        return None
    return find_candidates(ripgrep, real, needle, wanted.largest, wanted.seconds)


def _search_each(base: Directory, paths: Iterable[str], wanted: Search, found: Found) -> None:
    ends = time.monotonic() + wanted.seconds
    with FilesBelow(base) as files:
        for path in paths:
            is_late = time.monotonic() >= ends
            if is_late:
                found.truncated = True
            elif not is_temporary(path.rpartition("/")[2]):
                _search_one(files, path, wanted, found)
            if found.truncated and (is_late or _is_full(wanted, found)):
                return


def _is_full(wanted: Search, found: Found) -> bool:
    return wanted.max_count is not None and len(found.hits) >= wanted.max_count


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
    room = None if wanted.max_count is None else wanted.max_count - len(found.hits)
    hits = [
        # One more than there is room for shows whether something was left out.
        Hit(path, line)
        for line in islice(lines_in(data, wanted.query), None if room is None else room + 1)
    ]
    found.truncated = found.truncated or (room is not None and len(hits) > room)
    found.hits += hits[:room]


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
