"""Reach what is below a root directory on disk: links are resolved one by one, and none leads out."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from deepagents._values import valueclass
from deepagents.backends._bytes import code_of, reason_of
from deepagents.backends._directory import BY_HANDLE, Directory, open_directory
from deepagents.errors import BackendError

Check: TypeAlias = Callable[[tuple[str, ...]], None]
"""Refuses, by raising, a path below the root whose links are resolved."""
# Linux gives up after as many links in one path (MAXSYMLINKS).
_MOST_LINKS: Final = 40


class LeavesRootError(OSError):
    """A link leads out of the root."""

    def __init__(self) -> None:
        # The text must not name the target, which may be something private outside.
        super().__init__(errno.EXDEV, "a link leads out of the root")


@valueclass
class Entry:
    """A name in an open directory, whether it exists or not; the root itself has an empty name.

    `made` counts the directories above it that were made on the way.
    """

    above: Directory
    name: str
    parts: tuple[str, ...]
    made: int = 0

    def stat(self) -> os.stat_result:
        """Return what the system knows of this, or raise `FileNotFoundError`."""
        return self.above.stat(self.name)

    def stat_if_any(self) -> os.stat_result | None:
        """Return what the system knows of this, if it exists."""
        try:
            return self.stat()
        except FileNotFoundError:
            return None


@valueclass
class ConfinedDirectory:
    """All that is below `root`, a resolved directory."""

    root: Path
    by_handle: bool = BY_HANDLE

    @contextmanager
    def entry(
        self,
        parts: Iterable[str],
        *,
        follow: bool = True,
        make_parents: bool = False,
        check: Check | None = None,
    ) -> Generator[Entry]:
        """Find an entry; with `follow`, a link at its end is resolved too.

        `check` gets the resolved parts before anything is made, once the entry is reached, and as far as they
        are known where the way ends early.

        Raises:
            LeavesRootError: when a link on the way leads out.
            OSError: when the way there ends early.
        """
        if make_parents:
            # The root need not be there before something is written.
            self.root.mkdir(parents=True, exist_ok=True)
        with self._walk(make_parents, check) as walk:
            entry = walk.to(parts, follow)
            if check:
                check(entry.parts)
            yield entry

    @contextmanager
    def directory(self, parts: Iterable[str], *, check: Check | None = None) -> Generator[tuple[Entry, Path]]:
        """Open a directory, and return its real path with it."""
        with self.entry([*parts, "."], check=check) as entry:
            yield entry, self.path_of(entry.parts)

    def path_of(self, parts: tuple[str, ...]) -> Path:
        """Return the real path of resolved parts."""
        return self.root.joinpath(*parts)

    def real_parts(self, parts: Iterable[str]) -> tuple[str, ...]:
        """Resolve every link on the way to a path, as far as there is a way."""
        with self._walk(make_parents=False) as walk:
            try:
                return walk.to(parts, follow=True).parts
            except (FileNotFoundError, NotADirectoryError):
                return walk.heading()

    @contextmanager
    def _walk(self, make_parents: bool, check: Check | None = None) -> Generator[_Walk]:
        with open_directory(self.root, by_handle=self.by_handle) as top:
            walk = _Walk(self.root, top, make_parents, check)
            try:
                yield walk
            finally:
                walk.back_to_top()


class _Walk:
    """One way down from the root, with every directory on it held open.

    A path is never given to the system as a whole: between a check and the use, another process could put a
    link in the place of any directory on it. Each name is opened in the directory that is open already.
    """

    def __init__(self, root: Path, top: Directory, make_parents: bool, check: Check | None) -> None:
        self._root = root
        self._top = top
        self._way: list[tuple[str, Directory]] = []
        self._ahead: deque[str] = deque()
        self._make_parents = make_parents
        self._check = check
        self._links = 0
        self._made = 0

    @property
    def _here(self) -> Directory:
        return self._way[-1][1] if self._way else self._top

    def to(self, parts: Iterable[str], follow: bool) -> Entry:
        self._ahead.extend(parts)
        try:
            return self._to_end(follow)
        except OSError:
            # Without this, the kind of error would tell what is in a directory that is denied.
            if self._check:
                self._check(self.heading())
            raise

    def _to_end(self, follow: bool) -> Entry:
        while self._ahead:
            name = self._ahead.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                self._up()
            elif self._ahead:
                self._down(name)
            elif not (follow and self._through_link(name)):
                return Entry(self._here, name, (*self._names(), name), self._made)
        return Entry(self._here, "", self._names())

    def heading(self) -> tuple[str, ...]:
        """Return where the way leads, as far as links are resolved."""
        return (*self._names(), *(name for name in self._ahead if name not in ("", ".", "..")))

    def back_to_top(self) -> None:
        while self._way:
            self._way.pop()[1].close()

    def _names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._way)

    def _up(self) -> None:
        if not self._way and self._root.parent == self._root:
            return
        if not self._way:
            raise LeavesRootError
        self._way.pop()[1].close()

    def _down(self, name: str) -> None:
        try:
            self._way.append((name, self._here.child(name)))
        except NotADirectoryError:
            # Links and files are refused alike, so only now is it asked which of them this is.
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
            self._made += 1
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
            # Another name of the root may lead here. Before 3.13, `Path.resolve` raises on a loop of links.
            path = Path(os.path.realpath(path.parent), path.name)
        if not path.is_relative_to(self._root):
            raise LeavesRootError
        self.back_to_top()
        return path.relative_to(self._root).parts


def explain(error: OSError) -> str:
    """Describe a failure in the system's words, which name no real path."""
    if isinstance(error, LeavesRootError):
        return str(error.strerror)
    # `str(error)` would hold the real path, which a model in a virtual root must not learn.
    return reason_of(error)


@contextmanager
def translate_os_errors(what: str, doing: str, hint: str = "") -> Generator[None]:
    """Turn failures of the system into errors that say what could not be done with `what`."""
    try:
        yield
    except FileNotFoundError as error:
        ending = f".{hint}" if hint else ""
        raise BackendError("file_not_found", f"{what} not found{ending}") from error
    except OSError as error:
        named = what[0].lower() + what[1:]
        raise BackendError(code_of(error), f"Error {doing} {named}: {explain(error)}") from error
