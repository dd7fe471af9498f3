"""Find the files of a directory by some of their letters; the directory is read in the background."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from heapq import nsmallest
from pathlib import Path
from threading import Lock, Thread
from typing import Final

from deepagents.undo.ignores import GIT, read_above, read_rules
from deepagents_cli.text import one_line

_MOST: Final = 50_000_000
"""Characters of all paths: about a million files, the upper ones first."""
_SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
_MOST_SECONDS: Final = 60.0
_FRESH: Final = 5.0
"""Seconds, at the least, before the directory is read again, and in times what reading it took."""
_TIMES: Final = 20
_AT_ONCE: Final = 100
"""Paths between two moments in which keys that were pressed go first."""


class FileIndex:
    """The files below a directory, read by a thread of their own when they are first asked for.

    A search gives what is known at that moment; while the directory is read again, what was known before.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths: list[str] = []
        self._until = -1.0
        self._reader: Thread | None = None
        self._lock = Lock()
        self._last: tuple[list[str], str, int, list[str]] = ([], "", 0, [])
        """The list that was searched last, for what, how far, and what was found."""

    def search(self, typed: str, most: int = 50, done: Callable[[], None] | None = None) -> list[str]:
        """Return the paths that hold the letters of a text in their order, the likeliest first.

        `done` is called by another thread when more than that is known.
        """
        self._refresh(done)
        wanted = typed.lower()
        # One thread at a time: the next key asks while the search for the one before goes on.
        with self._lock:
            found = self._find(wanted)
        return nsmallest(most, found, key=lambda path: _rank(path, wanted))

    def wait(self) -> None:
        """Wait until the directory is read."""
        if self._reader is not None:
            self._reader.join()

    def _refresh(self, done: Callable[[], None] | None) -> None:
        is_reading = self._reader is not None and self._reader.is_alive()
        if not is_reading and time.monotonic() > self._until:
            self._reader = Thread(target=self._read, args=(done,), daemon=True)
            self._reader.start()

    def _read(self, done: Callable[[], None] | None) -> None:
        begun = time.monotonic()
        # At first there is nothing else to be searched.
        found = [] if self._paths else self._paths
        room = _MOST
        for number, path in enumerate(walk(self._root)):
            found.append(path)
            room -= len(path)
            if room < 0:
                break
            if not number % _AT_ONCE:
                time.sleep(0.0005)
        is_news = found is self._paths or found != self._paths
        self._paths = found
        self._until = time.monotonic() + max(_FRESH, _TIMES * (time.monotonic() - begun))
        if done is not None and is_news:
            done()

    def _find(self, wanted: str) -> list[str]:
        paths, (known, before, upto, earlier) = self._paths, self._last
        if paths is not known or not wanted.startswith(before):
            upto, earlier = 0, []
        end = len(paths)
        found: list[str] = []
        for candidates in (earlier, paths[upto:end]):
            for number, path in enumerate(candidates):
                if _holds(path.lower(), wanted):
                    found.append(path)
                if not number % _AT_ONCE:
                    time.sleep(0)
        self._last = (paths, wanted, end, found)
        return found


def _holds(path: str, wanted: str) -> bool:
    """Tell whether a path has these letters in this order."""
    if wanted in path:
        return True
    at = -1
    for letter in wanted:
        at = path.find(letter, at + 1)
        if at < 0:
            return False
    return True


def _rank(path: str, wanted: str) -> tuple[int, int, int, int, str]:
    """Return what sorts the likelier path first: by where the letters stand, and how near to each other."""
    low = path.lower()
    name = low.rstrip("/").rfind("/") + 1
    if low.startswith(wanted):
        kind = 0
    elif low.startswith(wanted, name):
        kind = 1
    elif wanted in low:
        kind = 2 if low.find(wanted, name) >= 0 else 3
    else:
        kind = 4 if _holds(low[name:], wanted) else 5
    return kind, _span(low, wanted) if kind > 3 else 0, path.count("/"), len(path), path


def _span(path: str, wanted: str) -> int:
    """Return how many characters the letters take, the last ones of their kind."""
    at = len(path)
    last = -1
    for letter in reversed(wanted):
        at = path.rfind(letter, 0, at)
        last = max(last, at)
    return last - at


def walk(root: Path, clock: Callable[[], float] = time.monotonic) -> Iterator[str]:
    """Yield the paths of files and directories below a root, the upper ones first, within bounds.

    Links to directories are not followed. Names that a terminal could not show as they are, are left out.
    """
    end = clock() + _MOST_SECONDS
    ignores = read_above(str(root))
    waiting = deque([""])
    while waiting:
        base = waiting.popleft()
        directory = root / base
        if is_top := (directory / GIT).exists():
            ignores.tops.add(str(directory))
        if rules := read_rules(directory, is_top=is_top):
            ignores.texts[str(directory)] = rules
        for name, is_directory in _entries(directory):
            if clock() > end:
                return
            if ignores.ignores(f"{directory}/{name}", is_directory):
                continue
            path = f"{base}{name}"
            if is_directory:
                waiting.append(f"{path}/")
            yield f"{path}/" if is_directory else path


def _entries(place: Path) -> Iterator[tuple[str, bool]]:
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            name = entry.name
            if name not in _SKIPPED and one_line(name) == name and '"' not in name:
                yield name, entry.is_dir(follow_symlinks=False)
