"""Resolve a caller's path to an entry on disk, and check at the moment of use that the caller may have it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Protocol

from deepagents._paths import is_within, normalise
from deepagents._text import escape_controls
from deepagents._values import valueclass
from deepagents.backends._directory import Directory
from deepagents.backends._refusals import Denied
from deepagents.backends.filesystem.confined_dir import ConfinedDirectory, Entry, translate_os_errors
from deepagents.backends.protocol import Allowed
from deepagents.errors import BackendError
from deepagents.permissions import Access, FilesystemOperation


@valueclass
class AccessBelow:
    """An `Allowed` for paths relative to a directory that goes by all these names."""

    allowed: Allowed
    tops: tuple[str, ...]

    def __call__(self, path: str) -> bool:
        """Return whether one path is allowed."""
        return all(self.allowed(f"{top}/{path}") for top in self.tops)

    def doubtful_in(self, directory: str) -> Callable[[str], object] | None:
        """Return a fast test for whether a name right in a directory need be asked about; `None` without."""
        # Only our rules can be asked in advance; a directory of two names is asked about under both.
        if not isinstance(self.allowed, Access) or len(self.tops) != 1:
            return None
        return self.allowed.rules.doubtful_names(f"{self.tops[0]}/{directory}", self.allowed.operation)

    def all_below(self, directory: str) -> bool:
        """Return whether every path below a directory is surely allowed."""
        return all(self.allowed.all_below(f"{top}/{directory}".rstrip("/") or "/") for top in self.tops)


@valueclass
class StaysBelow:
    """An `Allowed` for what lies below a directory by all its names, so that no link leads out of that."""

    top: str
    further: Allowed | None = None

    def __call__(self, path: str) -> bool:
        """Return whether one path is allowed."""
        return is_within(path, self.top) and (self.further is None or self.further(path))

    def all_below(self, directory: str) -> bool:
        """Return whether every path below a directory is surely allowed."""
        return is_within(directory, self.top) and (self.further is None or self.further.all_below(directory))


@valueclass
class ResolvedPath:
    """A path that a caller named, split into parts below a root; `shown` is what the caller calls it.

    `allowed` asks the rules for an `operation`, if there are any; `name_of` names resolved parts as they do.
    """

    root: ConfinedDirectory
    parts: tuple[str, ...]
    shown: str
    name_of: Callable[[tuple[str, ...]], str]
    hint: str = ""
    allowed: Allowed | None = None
    operation: FilesystemOperation = "read"

    @contextmanager
    def entry(self, *, follow: bool = True, make_parents: bool = False) -> Generator[Entry]:
        """Find the entry, when the caller may have it.

        Raises:
            BackendError: `permission_denied`.
            OSError: when there is no way there.
        """
        with self.root.entry(self.parts, follow=follow, make_parents=make_parents, check=self.check) as entry:
            yield entry

    @contextmanager
    def directory(self) -> Generator[tuple[Directory, Path, AccessBelow | None]]:
        """Open the directory; with it come its real path, and which names in it the caller may know of.

        Raises:
            BackendError: `permission_denied`.
            OSError: when there is no way there.
        """
        with self.root.directory(self.parts, check=self.check_link_target) as (entry, real):
            below = None
            if self.allowed is not None:
                names = (self.shown, self.name_of(entry.parts))
                below = AccessBelow(self.allowed, tuple(dict.fromkeys(each.rstrip("/") for each in names)))
            yield entry.above, real, below

    def check(self, parts: tuple[str, ...]) -> None:
        """Check both what the caller named and where it leads.

        Raises:
            BackendError: `permission_denied`, without a word of where a link leads.
        """
        if self.allowed is None:
            return
        # The same path, unless a link led elsewhere.
        for each in dict.fromkeys((self.shown, self.name_of(parts))):
            if not self.allowed(each):
                raise Denied(self.operation, self.shown)

    def check_link_target(self, parts: tuple[str, ...]) -> None:
        """Check where a search or a listing starts if a link led there; else its entries are checked."""
        # A directory itself need not be allowed for something in it to be; a link could lead anywhere.
        if parts != tuple(part for part in self.parts if part not in ("", ".")):
            self.check(parts)

    def check_all_below(self, parts: tuple[str, ...]) -> None:
        """Check that the caller may have everything below a directory.

        Raises:
            BackendError: `permission_denied`.
        """
        if self.allowed is None:
            return
        if not (self.allowed.all_below(self.shown) and self.allowed.all_below(self.name_of(parts))):
            raise Denied(self.operation, self.shown)

    def _check_as_system(self, parts: tuple[str, ...]) -> None:
        if self.allowed is not None and not self.allowed(self.name_of(parts)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def real_parts(self) -> tuple[str, ...]:
        """Resolve every link on the way here."""
        with translate_os_errors(f"'{self.shown}'", "resolving"):
            return self.root.real_parts(self.parts)

    def below(self, path: str) -> str:
        """Return the caller's name for a path below this one; what is not UTF-8 in it is replaced."""
        if not path.isascii():
            # Names on disk are bytes; half characters could not be sent to a model or kept as JSON.
            path = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return f"{self.shown.rstrip('/')}/{path}"

    def describe_below(self, path: str) -> str:
        """Return the caller's name for a path below this one, fit for a line of a message."""
        return escape_controls(self.below(path))

    def stat(self, path: str) -> os.stat_result:
        """Return what the system knows of a path below this one, by links that stay inside."""
        with self.root.entry([*self.parts, *path.split("/")], check=self._check_as_system) as entry:
            return entry.stat()

    def is_regular_file(self, path: str) -> bool:
        """Return whether a path below this one leads to a file, by links that stay inside."""
        try:
            return stat.S_ISREG(self.stat(path).st_mode)
        except OSError:
            return False


class Paths(Protocol):
    """How a backend names the files of this machine; `start` is where a search begins that names no path."""

    start: ClassVar[str]

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve a path that a caller named, or raise `BackendError`."""
        ...

    def is_undeletable(self, parts: tuple[str, ...]) -> bool:
        """Return whether this may never be deleted."""
        ...


@valueclass
class VirtualPaths:
    """Paths that start at `/`, which is the root directory."""

    root: Path
    start: ClassVar[str] = "/"

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve a virtual path.

        Raises:
            BackendError: `invalid_path`.
        """
        shown = normalise(path)
        _check_encoding(path)
        parts = tuple(shown.split("/")[1:])
        return ResolvedPath(ConfinedDirectory(self.root), parts, shown, self.name_of, self._hint(shown))

    def name_of(self, parts: tuple[str, ...]) -> str:
        """Return the virtual path of resolved parts."""
        return "/" + "/".join(parts)

    def is_undeletable(self, parts: tuple[str, ...]) -> bool:
        """Return whether this may never be deleted: the root."""
        return not parts

    def _hint(self, shown: str) -> str:
        root = self.root.as_posix()
        if root == "/" or not f"{shown}/".startswith(f"{root}/"):
            return ""
        # The root may hold such a path itself, and then the caller may well mean that one.
        if (self.root / self.root.parts[1]).exists():
            return ""
        return f" Paths are relative to the root: use '{shown.removeprefix(root) or '/'}'."


@valueclass
class HostPaths:
    """Paths of this machine; relative ones start at `cwd`."""

    cwd: Path
    start: ClassVar[str] = "."

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve a path of this machine.

        Raises:
            BackendError: `invalid_path`.
        """
        check_path(path)
        full = self.cwd / path
        shown = Path(os.path.normpath(full)).as_posix()
        return ResolvedPath(ConfinedDirectory(Path(full.anchor)), full.parts[1:], shown, self.name_of)

    def name_of(self, parts: tuple[str, ...]) -> str:
        """Return the path of resolved parts on this machine."""
        return Path(self.cwd.anchor).joinpath(*parts).as_posix()

    def is_undeletable(self, parts: tuple[str, ...]) -> bool:
        """Return whether this may never be deleted: the working directory and all above it."""
        return self.cwd.parts[1:][: len(parts)] == parts


def check_path(path: str) -> None:
    """Check that a path can be one of this machine.

    Raises:
        BackendError: `invalid_path`.
    """
    if "\0" in path:
        raise BackendError("invalid_path", f"A path cannot hold a NUL character: {path!r}.")
    _check_encoding(path)


def _check_encoding(path: str) -> None:
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise BackendError("invalid_path", f"A path must be UTF-8: {path!r}.") from error
