"""Places below a root on disk: links are resolved one by one, and none leads out."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from deepagents.backends._directory import BY_HANDLE, Directory, opened

Check: TypeAlias = Callable[[tuple[str, ...]], None]
_MOST_LINKS = 40


class LeavesRoot(OSError):
    """A link leads out of the root."""

    def __init__(self) -> None:
        super().__init__(errno.EXDEV, "a link leads out of the root")


@dataclass(frozen=True, slots=True)
class Place:
    """A name in an open directory, whether something stands there or not; the root itself has no name."""

    above: Directory
    name: str
    parts: tuple[str, ...]

    def stat(self) -> os.stat_result:
        """Describe what stands here, or raise `FileNotFoundError`."""
        return self.above.stat(self.name)

    def stat_if_any(self) -> os.stat_result | None:
        """Describe what stands here, if anything does."""
        try:
            return self.stat()
        except FileNotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class Tree:
    """All places below `root`, a resolved directory."""

    root: Path
    by_handle: bool = BY_HANDLE

    @contextmanager
    def place(
        self,
        parts: Iterable[str],
        *,
        follow: bool = True,
        make_parents: bool = False,
        check: Check | None = None,
    ) -> Generator[Place]:
        """Find a place; with `follow`, a link at its end is resolved too.

        `check` gets the real parts before anything is made, once the place is reached, and as far as they are
        known where the way ends early; it may raise.

        Raises:
            LeavesRoot: when a link on the way leads out.
            OSError: when the way there ends early.
        """
        if make_parents:
            self.root.mkdir(parents=True, exist_ok=True)
        with self._climb(make_parents, check) as climb:
            place = climb.to(parts, follow)
            if check:
                check(place.parts)
            yield place

    @contextmanager
    def directory(self, parts: Iterable[str], *, check: Check | None = None) -> Generator[tuple[Place, Path]]:
        """Open a directory; hand over its real path beside it."""
        with self.place([*parts, "."], check=check) as place:
            yield place, self.root.joinpath(*place.parts)

    def real_parts(self, parts: Iterable[str]) -> tuple[str, ...]:
        """Resolve every link on the way to a place, as far as there is a way."""
        with self._climb(make_parents=False) as climb:
            return climb.real_names(parts)

    @contextmanager
    def _climb(self, make_parents: bool, check: Check | None = None) -> Generator[_Climb]:
        with opened(self.root, by_handle=self.by_handle) as top:
            climb = _Climb(self.root, top, make_parents, check)
            try:
                yield climb
            finally:
                climb.back_to_top()


class _Climb:
    """One way down from the root, with every directory on it held open."""

    def __init__(self, root: Path, top: Directory, make_parents: bool, check: Check | None) -> None:
        self._root = root
        self._top = top
        self._way: list[tuple[str, Directory]] = []
        self._ahead: deque[str] = deque()
        self._make_parents = make_parents
        self._check = check
        self._links = 0

    @property
    def _here(self) -> Directory:
        return self._way[-1][1] if self._way else self._top

    def to(self, parts: Iterable[str], follow: bool) -> Place:
        self._ahead.extend(parts)
        try:
            return self._to_end(follow)
        except OSError:
            if self._check:
                self._check(self._heading())
            raise

    def _to_end(self, follow: bool) -> Place:
        while self._ahead:
            name = self._ahead.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                self._up()
            elif self._ahead:
                self._down(name)
            elif not (follow and self._through_link(name)):
                return Place(self._here, name, (*self._names(), name))
        return Place(self._here, "", self._names())

    def real_names(self, parts: Iterable[str]) -> tuple[str, ...]:
        try:
            return self.to(parts, follow=True).parts
        except (FileNotFoundError, NotADirectoryError):
            return self._heading()

    def back_to_top(self) -> None:
        while self._way:
            self._way.pop()[1].close()

    def _heading(self) -> tuple[str, ...]:
        """Name where the way leads, as far as links are resolved."""
        return (*self._names(), *(name for name in self._ahead if name not in ("", ".", "..")))

    def _names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._way)

    def _up(self) -> None:
        if not self._way and self._root.parent == self._root:
            return
        if not self._way:
            raise LeavesRoot
        self._way.pop()[1].close()

    def _down(self, name: str) -> None:
        try:
            self._way.append((name, self._here.child(name)))
        except NotADirectoryError:
            if not self._through_link(name):
                self._ahead.appendleft(name)
                raise
        except FileNotFoundError:
            if not self._make_parents:
                self._ahead.appendleft(name)
                raise
            self._make(name)
            self._way.append((name, self._here.child(name)))

    def _make(self, name: str) -> None:
        if self._check:
            self._check((*self._names(), name, *self._ahead))
        try:
            self._here.mkdir(name)
        except FileExistsError:
            return

    def _through_link(self, name: str) -> bool:
        """Put the target of a link ahead; `False` when there is no link."""
        try:
            target = self._here.readlink(name)
        except FileNotFoundError:
            return False
        if target is None:
            return False
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self._ahead.extendleft(reversed(self._parts_of(target)))
        return True

    def _parts_of(self, target: str) -> Sequence[str]:
        path = Path(target)
        if not path.is_absolute():
            return path.parts
        if not path.is_relative_to(self._root):
            # Not `Path.resolve`, which raises on a loop of links before Python 3.13.
            path = Path(os.path.realpath(path.parent), path.name)
        if not path.is_relative_to(self._root):
            raise LeavesRoot
        self.back_to_top()
        return path.relative_to(self._root).parts
