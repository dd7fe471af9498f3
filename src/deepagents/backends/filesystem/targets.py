"""What a caller's path means on disk, and what a place on disk is called for the caller."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deepagents._paths import normalise
from deepagents.backends._directory import Directory
from deepagents.backends.filesystem.faults import told
from deepagents.backends.filesystem.permits import Inside, Permit
from deepagents.backends.filesystem.tree import Place, Tree
from deepagents.errors import BackendError


@dataclass(frozen=True, slots=True)
class Target:
    """A place that a caller named; `shown` is the name that the caller may see."""

    tree: Tree
    parts: tuple[str, ...]
    shown: str
    hint: str = ""
    permit: Permit | None = None

    @contextmanager
    def place(self, *, follow: bool = True, make_parents: bool = False) -> Generator[Place]:
        """Find the place, when the caller may.

        Raises:
            BackendError: `permission_denied`.
            OSError: when there is no way there.
        """
        with self.tree.place(
            self.parts, follow=follow, make_parents=make_parents, check=self._check
        ) as place:
            yield place

    @contextmanager
    def directory(self) -> Generator[tuple[Directory, Path, Inside | None]]:
        """Open the directory; beside it its real path, and which names in it the caller may know of.

        Raises:
            BackendError: `permission_denied`.
            OSError: when there is no way there.
        """
        with self.tree.directory(self.parts, check=self.check_led) as (place, real):
            inside = self.permit.inside(self.shown, place.parts) if self.permit else None
            yield place.above, real, inside

    def check(self, place: Place) -> None:
        """Refuse a place that the caller may not know of."""
        self._check(place.parts)

    def check_led(self, parts: tuple[str, ...]) -> None:
        """Refuse to look from a place to which a link led, and which the caller may not know of."""
        if parts != tuple(part for part in self.parts if part not in ("", ".")):
            self._check(parts)

    def check_below(self, place: Place) -> None:
        """Refuse a directory unless the caller may have everything below it."""
        if self.permit:
            self.permit.check_below(self.shown, place.parts)

    def _check(self, parts: tuple[str, ...]) -> None:
        if self.permit:
            self.permit.check(self.shown, parts)

    def real_parts(self) -> tuple[str, ...]:
        """Resolve every link on the way here."""
        with told(f"'{self.shown}'", "resolving"):
            return self.tree.real_parts(self.parts)

    def below(self, path: str) -> str:
        """Name a place below this one."""
        return f"{self.shown.rstrip('/')}/{printable(path)}"

    def stat(self, path: str) -> os.stat_result:
        """Describe what a path below this one leads to, by links that stay inside."""
        check = self.permit.pass_over if self.permit else None
        with self.tree.place([*self.parts, *path.split("/")], check=check) as place:
            return place.stat()

    def is_regular_file(self, path: str) -> bool:
        """Tell whether a path below this one leads to a file, by links that stay inside."""
        try:
            return stat.S_ISREG(self.stat(path).st_mode)
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class VirtualNames:
    """Paths that start at `/`, which is the root directory."""

    root: Path

    def find(self, path: str) -> Target:
        """Find the place that a virtual path names."""
        shown = normalise(path)
        _check_encoding(path)
        return Target(Tree(self.root), tuple(shown.split("/")[1:]), shown, self._hint(shown))

    def start(self, path: str | None) -> Target:
        """Find where a search begins."""
        return self.find(path or "/")

    def shown(self, parts: tuple[str, ...]) -> str:
        """Name a place below the root."""
        return "/" + "/".join(parts)

    def guards(self, parts: tuple[str, ...]) -> bool:
        """Tell whether a place may never be deleted."""
        return not parts

    def _hint(self, shown: str) -> str:
        root = self.root.as_posix()
        if root == "/" or not f"{shown}/".startswith(f"{root}/"):
            return ""
        if (self.root / self.root.parts[1]).exists():
            return ""
        return f" Paths are relative to the root: use '{shown.removeprefix(root) or '/'}'."


@dataclass(frozen=True, slots=True)
class HostNames:
    """Paths of this machine; relative ones start at `cwd`."""

    cwd: Path

    def find(self, path: str) -> Target:
        """Find the place that a path of this machine names."""
        if "\0" in path:
            raise BackendError("invalid_path", f"A path cannot hold a NUL character: {path!r}.")
        _check_encoding(path)
        full = self.cwd / path
        return Target(Tree(Path(full.anchor)), full.parts[1:], Path(os.path.normpath(full)).as_posix())

    def start(self, path: str | None) -> Target:
        """Find where a search begins; `/` means the working directory here too."""
        return self.find("." if path in (None, "", "/") else path)

    def shown(self, parts: tuple[str, ...]) -> str:
        """Name a place on this machine."""
        return Path(self.cwd.anchor).joinpath(*parts).as_posix()

    def guards(self, parts: tuple[str, ...]) -> bool:
        """Tell whether a place may never be deleted: the working directory and all above it."""
        return self.cwd.parts[1:][: len(parts)] == parts


Names = VirtualNames | HostNames


def printable(path: str) -> str:
    """Replace what is not UTF-8 in a name from the disk."""
    if path.isascii():
        return path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _check_encoding(path: str) -> None:
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise BackendError("invalid_path", f"A path must be UTF-8: {path!r}.") from error
