"""Search the files below a directory, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from deepagents._globs import Glob
from deepagents.backends._directory import Directory, is_temporary
from deepagents.backends._search.deadline import Deadline
from deepagents.backends._search.files import Files, read_at_most
from deepagents.backends._search.lines import Line, Query, lines_in
from deepagents.backends._search.ripgrep import Candidates, candidates
from deepagents.backends._search.walk import Known, Unread, reason_of, walk
from deepagents.backends.kinds import BINARY_HEAD
from deepagents.backends.protocol import Allowed

_BLOCK = 1 << 20


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
    glob: Glob | None = None
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
    """Search below `base`, which lies at the path `real` when ripgrep shall help."""
    found = Found()
    if "\n" in wanted.query.pattern and not wanted.query.expression:
        return found
    _search_each(base, _files(base, wanted, found, ripgrep, real), wanted, found)
    return found


def search_file(base: Directory, name: str, wanted: Search) -> Found:
    """Search one file of a directory, when it passes the filter."""
    found = Found()
    if wanted.glob is None or wanted.glob(name):
        _search_each(base, [name], wanted, found)
    return found


def _files(
    base: Directory, wanted: Search, found: Found, ripgrep: str | None, real: Path | None
) -> list[str]:
    if narrowed := _candidates(wanted, ripgrep, real):
        found.truncated = not narrowed.complete
        known = _allowed(narrowed.files, wanted.allowed)
        return sorted(filter(wanted.glob, known) if wanted.glob else known)
    walked = walk(base, Deadline.within(wanted.seconds), wanted.glob, allowed=wanted.allowed)
    found.truncated = walked.timed_out
    found.unread += walked.unread
    return walked.files


def _allowed(paths: list[str], allowed: Allowed | None) -> list[str]:
    if allowed is None:
        return paths
    free = {above: allowed.all_below(above) for above in {path.rpartition("/")[0] for path in paths}}
    return [path for path in paths if free[path.rpartition("/")[0]] or allowed(path)]


def _candidates(wanted: Search, ripgrep: str | None, real: Path | None) -> Candidates | None:
    needle = wanted.query.needle
    if not (ripgrep and real and needle):
        return None
    return candidates(ripgrep, real, needle, wanted.seconds)


def _search_each(base: Directory, paths: Iterable[str], wanted: Search, found: Found) -> None:
    deadline = Deadline.within(wanted.seconds)
    with Files(base) as files:
        for path in paths:
            if deadline.passed:
                found.truncated = True
            elif not is_temporary(path.rpartition("/")[2]):
                _search_one(files, path, wanted, found, deadline)
            if found.truncated and (deadline.passed or _full(wanted, found)):
                return


def _full(wanted: Search, found: Found) -> bool:
    return wanted.max_count is not None and len(found.hits) >= wanted.max_count


def _search_one(files: Files, path: str, wanted: Search, found: Found, deadline: Deadline) -> None:
    try:
        fd = files.open(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        found.unread.append(Unread(path, reason_of(error)))
        return
    try:
        data = read_at_most(fd, wanted.largest)
        if data is None:
            _pass_over(fd, path, wanted, found, deadline)
            return
        _add_lines(data, path, wanted, found)
    except IsADirectoryError:
        return
    except OSError as error:
        found.unread.append(Unread(path, reason_of(error)))
    finally:
        os.close(fd)


def _add_lines(data: bytes, path: str, wanted: Search, found: Found) -> None:
    room = None if wanted.max_count is None else wanted.max_count - len(found.hits)
    hits = [
        Hit(path, line) for line in islice(lines_in(data, wanted.query), None if room is None else room + 1)
    ]
    found.truncated = found.truncated or (room is not None and len(hits) > room)
    found.hits += hits[:room]


def _pass_over(fd: int, path: str, wanted: Search, found: Found, deadline: Deadline) -> None:
    """Say that a file is too large to show lines of, when there may be some."""
    if _may_hold(fd, wanted.query.needle, deadline):
        size = os.fstat(fd).st_size
        found.unread.append(
            Unread(path, f"may match, but its {size:,} bytes are over the limit of {wanted.largest:,}")
        )


def _may_hold(fd: int, needle: bytes | None, deadline: Deadline) -> bool:
    os.lseek(fd, 0, os.SEEK_SET)
    block = os.read(fd, _BLOCK)
    if b"\0" in block[:BINARY_HEAD]:
        return False
    if needle is None:
        return True
    kept = b""
    while block and not deadline.passed:
        if needle in kept + block:
            return True
        kept = block[-len(needle) + 1 :] if len(needle) > 1 else b""
        block = os.read(fd, _BLOCK)
    return bool(block)
