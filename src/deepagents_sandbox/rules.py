"""Find which files that a sandbox was given are bound by rules, and undo what a command made against them.

Rules speak of names, and mounts of files that are there. So existing files are looked for when a command
starts, and what it makes at a name that nobody may write to is removed afterwards.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from deepagents._globs import Place
from deepagents._text import escape_controls
from deepagents._values import field, recordclass, valueclass
from deepagents.errors import BackendError
from deepagents.permissions import ANY_NAME, Access, CommandAccess, Rules
from deepagents_sandbox.leftovers import open_below, remove

Mode: TypeAlias = Literal["writable", "readable", "hidden"]
MOST_MARKS: Final = 300
"""Mounts that one command may need for its rules: each one makes the next slower."""
_MOST_NAMED: Final = 10


@valueclass
class _Below:
    """What rules say of all that a command finds or makes in directories of one place."""

    is_hidden: bool
    is_free_to_read: bool
    takes_new: bool
    is_closed: bool
    is_free_to_write: bool
    is_doubtful: Callable[[str], object]

    @classmethod
    def look(cls, allowed: CommandAccess, directory: str) -> _Below:
        """Ask about one of the directories: rights of commands are the same in all of them."""
        read, write = allowed.read, allowed.write
        return cls(
            _is_closed(read, directory),
            read.all_below(directory),
            write(f"{directory}/{ANY_NAME}"),
            _is_closed(write, directory),
            write.all_below(directory),
            allowed.rules.doubtful_names(directory),
        )

    def is_even(self, base: Mode, *, reads: bool) -> bool:
        """Return whether rules say no more of what is in a directory than of the directory."""
        is_written_alike = base != "writable" or self.is_closed or self.is_free_to_write
        return is_written_alike and (self.is_free_to_read or not reads)


@recordclass
class Marks:
    """What rules say of existing files: `modes` of those that differ from the directory that they are in.

    `denied` are all names that must not be written to, with the target of each that is a link; below the
    directories in `closed` everything is so. With `covered`, only writing counts, and what is in those
    directories, which were hidden, is as it was.
    """

    allowed: CommandAccess
    given: Mapping[Path, Mode]
    modes: dict[Path, Mode] = field(default_factory=dict[Path, Mode])
    denied: dict[str, str | None] = field(default_factory=dict[str, str | None])
    closed: set[str] = field(default_factory=set[str])
    covered: frozenset[str] | None = None
    _below: dict[Place, _Below] = field(default_factory=dict[Place, _Below])

    @classmethod
    def none(cls) -> Marks:
        """Return what holds without rules."""
        return cls(CommandAccess(Rules(), True), {})

    @classmethod
    def look(cls, allowed: CommandAccess, given: Mapping[Path, Mode]) -> Marks:
        """Look at all that is there now.

        Raises:
            BackendError: `permission_denied`, when rules speak about more files than can be mounted.
        """
        marks = cls(allowed, given)
        marks.look_again()
        if len(marks.modes) > MOST_MARKS:
            raise BackendError(
                "permission_denied",
                f"Rules speak about {len(marks.modes)} files one by one here, and a command can be kept from "
                f"{MOST_MARKS} at most. Use the file tools, or rules for whole directories.",
            )
        return marks

    def look_again(self) -> None:
        """Look at everything in each directory that was given."""
        inner = {str(path) for path in self.given}
        for path, mode in self.given.items():
            if path.is_dir():
                # A command can nest directories deeper than this program can call itself.
                waiting: list[tuple[str, Mode, object]] = [(str(path), mode, True)]
                while waiting:
                    below, around, is_doubtful = waiting.pop()
                    waiting += self._look_into(below, mode, around, is_doubtful, inner)
            else:
                self._look_at_file(str(path), mode, mode, is_link=False)

    def undo(self, is_kept: Callable[[Path], bool]) -> list[str]:
        """Remove what has been made since at names that must not be written to; return what that was."""
        covered = frozenset(str(path) for path, mode in self.modes.items() if mode == "hidden")
        now = Marks(self.allowed, self.given, covered=covered, _below=self._below)
        now.look_again()
        undone: list[str] = []
        for path in sorted(now.denied.keys() - self.denied.keys()):
            if not is_kept(Path(path)) and self._remove(Path(path)):
                undone.append(path)
        for directory in sorted(now.closed - self.closed):
            with suppress(OSError):
                found = sorted(Path(directory).iterdir())
                undone += [str(each) for each in found if self._remove(each)]
        for path, target in self.denied.items():
            if target is not None and now.denied.get(path) != target:
                self._restore_link(Path(path), target)
                undone.append(path)
        return undone

    def _look_into(
        self, path: str, base: Mode, around: Mode, is_doubtful: object, given: Collection[str]
    ) -> Iterable[tuple[str, Mode, object]]:
        """Look at a directory and its files; return the directories in it, with the mode around them.

        No rule speaks of a name that is not doubtful, and of most files and directories none does.
        """
        below = self._find_below(path)
        if self.covered is None and below.is_hidden:
            self._mark(path, "hidden", around)
            return ()
        if self.covered and path in self.covered:
            return ()
        mode = self._look_at_directory(path, below, is_doubtful) if base == "writable" else base
        # A mount on itself: what is one cannot be renamed or removed.
        self._mark(path, mode, around, is_held=path in self.denied and path not in given)
        if below.is_even(base, reads=self.covered is None):
            return ()
        return self._look_at_entries(path, base, mode, below.is_doubtful, given)

    def _look_at_entries(
        self,
        path: str,
        base: Mode,
        mode: Mode,
        doubts: Callable[[str], object],
        given: Collection[str],
    ) -> Iterator[tuple[str, Mode, object]]:
        for each in self._list(path, mode):
            is_doubtful = doubts(each.name)
            if each.is_dir(follow_symlinks=False):
                if each.path not in given:
                    yield each.path, mode, is_doubtful
            elif mode != base or is_doubtful:
                self._look_at_file(each.path, base, mode, is_link=each.is_symlink())

    def _find_below(self, directory: str) -> _Below:
        place = self.allowed.rules.place(directory)
        found = self._below.get(place)
        if found is None:
            found = self._below[place] = _Below.look(self.allowed, directory)
        return found

    def _look_at_directory(self, path: str, below: _Below, is_doubtful: object) -> Mode:
        if below.is_closed:
            self.closed.add(path)
        if is_doubtful and not self.allowed.write(path):
            self.denied[path] = None
        return "writable" if below.takes_new else "readable"

    def _list(self, path: str, mode: Mode) -> list[os.DirEntry[str]]:
        try:
            return _entries(path)
        except PermissionError:
            return self._list_closed(path, mode)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                # Longer than a path may be: no program makes this but to hide in it, and it is removed whole.
                self.denied[path] = None
            return []

    def _list_closed(self, path: str, mode: Mode) -> list[os.DirEntry[str]]:
        if self.covered is None:
            # A command could open its own directory, which this process cannot look into.
            self._mark(path, "hidden", mode)
            return []
        # A command may have closed a directory to hide in it what it made there.
        with suppress(OSError), open_below(*self._locate(Path(path))):
            return _entries(path)
        return []

    def _look_at_file(self, path: str, base: Mode, around: Mode, *, is_link: bool) -> None:
        mode = base
        if base == "writable" and not self.allowed.write(path):
            self.denied[path] = _target(path) if is_link else None
            mode = "readable"
            if is_link:
                # What it is put back into must be there: a mount on itself cannot be moved.
                self.modes.setdefault(Path(path).parent, around)
        if not self.allowed.read(path):
            mode = "hidden"
        # Nothing can be mounted on a link; what it leads to has a name of its own.
        if not is_link:
            self._mark(path, mode, around)

    def _mark(self, path: str, mode: Mode, around: Mode, *, is_held: bool = False) -> None:
        if mode != around or is_held:
            self.modes[Path(path)] = mode

    def _locate(self, path: Path) -> tuple[Path, tuple[str, ...]]:
        """Return the directory that was given and holds a path, and the names from there on."""
        base = max((each for each in self.given if each in path.parents), key=lambda each: len(each.parts))
        return base, path.relative_to(base).parts

    def _remove(self, path: Path) -> bool:
        base, parts = self._locate(path)
        try:
            with open_below(base, parts[:-1]) as directory:
                remove(directory, parts[-1])
        except OSError:
            return False
        return True

    def _restore_link(self, path: Path, target: str) -> None:
        base, parts = self._locate(path)
        with suppress(OSError), open_below(base, parts[:-1]) as directory:
            with suppress(FileNotFoundError):
                remove(directory, parts[-1])
            os.symlink(target, parts[-1], dir_fd=directory)


def describe_undone(paths: Sequence[str]) -> str:
    """Say that what a command made is not there any more."""
    # Names on disk are bytes, and a command chose these: half characters and new lines must not pass.
    named = [os.fsencode(each).decode("utf-8", "replace") for each in paths[:_MOST_NAMED]]
    shown = ", ".join(map(escape_controls, named)) + (
        f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    )
    return f"[permission denied for write: what the command made there was removed: {shown}]"


def _entries(path: str) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        return list(entries)


def _is_closed(access: Access, directory: str) -> bool:
    # Where a new name is allowed not all is denied, and asking about one name is fast.
    return not access(f"{directory}/{ANY_NAME}") and access.none_below(directory)


def _target(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except OSError:
        return None
