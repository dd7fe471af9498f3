"""Walk over the files below a directory without opening any of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import islice, takewhile
from math import inf

from deepagents._globs import GlobPattern
from deepagents._values import field, recordclass, valueclass
from deepagents.backends._bytes import is_temporary, reason_of
from deepagents.backends._directory import Directory
from deepagents.backends.filesystem.paths import AccessBelow

# The clock is read once for so many entries: one directory can hold millions.
_BATCH = 2048


@valueclass
class Unread:
    """A path that could not be looked into, and why, without a word about where it really lies."""

    path: str
    reason: str


@recordclass
class Walk:
    """The files that were found, as paths relative to the start, in order; and what is missing among them."""

    files: list[str] = field(default_factory=list[str])
    unread: list[Unread] = field(default_factory=list[Unread])
    timed_out: bool = False


def walk(
    base: Directory,
    seconds: float,
    glob: GlobPattern | None = None,
    accept_link: Callable[[str], bool] | None = None,
    allowed: AccessBelow | None = None,
    most: float = inf,
) -> Walk:
    """Find the regular files below `base` that match; a link counts as one when `accept_link` says so.

    What is not `allowed`, by its path from the start, is passed over. After `most` entries it ends, as it
    does after the time.
    """
    walker = _Walker(time.monotonic() + seconds, glob, accept_link, allowed, most)
    walker.run(base)
    walker.found.files.sort()
    return walker.found


class _Walker:
    def __init__(
        self,
        ends: float,
        glob: GlobPattern | None,
        accept_link: Callable[[str], bool] | None,
        allowed: AccessBelow | None,
        most: float,
    ) -> None:
        self.found = Walk()
        self._ends = ends
        self._glob = glob
        self._accept_link = accept_link
        self._allowed = allowed
        self._left = most
        self._free: str | None = None
        """The start of paths that need not be asked about."""

    def run(self, base: Directory) -> None:
        # A list and no recursion: trees can be deeper than Python's stack.
        levels = [(base, "", self._scan(base, ""))]
        try:
            while levels and not self.found.timed_out:
                directory, prefix, names = levels[-1]
                if not names:
                    levels.pop()
                    self._close(directory, base)
                    continue
                name = names.pop()
                if below := self._enter(directory, prefix, name):
                    levels.append((below, f"{prefix}{name}/", self._scan(below, f"{prefix}{name}/")))
        finally:
            for directory, _, _ in levels:
                self._close(directory, base)

    def _close(self, directory: Directory, base: Directory) -> None:
        if directory is not base:
            directory.close()

    def _enter(self, directory: Directory, prefix: str, name: str) -> Directory | None:
        if self._glob and not self._glob.may_match_below(prefix + name):
            return None
        try:
            return directory.child(name)
        # Removed, or replaced by a link, since it was listed; a search need not report that.
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._note_unread(prefix + name, error)
            return None

    def _scan(self, directory: Directory, prefix: str) -> list[str]:
        """Take the files of one directory and return the directories in it, the first one last."""
        here: list[str] = []
        below: list[str] = []
        fits = self._glob.names_in(prefix[:-1]) if self._glob else None
        try:
            with directory.scan() as entries:
                batches = iter(lambda: list(islice(entries, _BATCH)), list[os.DirEntry[str]]())
                for batch in takewhile(lambda _: not self.found.timed_out, batches):
                    self._sort_out(batch, fits, prefix, here, below)
                    self._left -= len(batch)
                    self.found.timed_out = self._left <= 0 or time.monotonic() >= self._ends
        except OSError as error:
            self._note_unread(prefix.rstrip("/"), error)
        if asked := self._find_rules(prefix):
            doubtful = asked.doubtful_in(prefix[:-1]) or bool
            here = [name for name in here if not doubtful(name) or asked(prefix + name)]
        here.sort()
        below.sort(reverse=True)
        self.found.files += [prefix + name for name in here if not is_temporary(name)]
        return below

    def _find_rules(self, prefix: str) -> AccessBelow | None:
        """Return what to ask about the paths that start so, if anything."""
        if self._allowed is None or (self._free is not None and prefix.startswith(self._free)):
            return None
        if not self._allowed.all_below(prefix[:-1]):
            return self._allowed
        self._free = prefix
        return None

    def _sort_out(
        self,
        batch: list[os.DirEntry[str]],
        fits: Callable[[str], object] | None,
        prefix: str,
        here: list[str],
        below: list[str],
    ) -> None:
        for entry in batch:
            name = entry.name
            if entry.is_file(follow_symlinks=False):
                if fits is None or fits(name):
                    here.append(name)
            elif entry.is_dir(follow_symlinks=False):
                below.append(name)
            elif self._is_wanted_link(entry, prefix + name):
                here.append(name)

    def _is_wanted_link(self, entry: os.DirEntry[str], path: str) -> bool:
        if not self._accept_link or not entry.is_symlink():
            return False
        return (self._glob is None or self._glob(path)) and self._accept_link(path)

    def _note_unread(self, path: str, error: OSError) -> None:
        if self._allowed is None or not path or self._allowed(path):
            self.found.unread.append(Unread(path, reason_of(error)))
