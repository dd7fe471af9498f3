"""Look at a directory on disk: find what differs from what is known of it, without reading the rest."""

from __future__ import annotations

import errno
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from deepagents._values import field, recordclass, valueclass
from deepagents.backends._bytes import is_temporary
from deepagents.backends._directory import Directory, FilesBelow
from deepagents.undo.ignores import GIT, IGNORE_FILE, Ignores, read_above, read_rules
from deepagents.undo.states import (
    DIRECTORY,
    NOTHING_THERE,
    OUT_OF_SIGHT,
    PathReading,
    reaching,
    read_path,
    signature_of,
    stat_path,
)

# Deeper trees are known to exist; each level holds a frame and a descriptor.
_DEEPEST: Final = 100
_TYPE: Final = 0o170000
_OUT_OF_MEANS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that say nothing about what is looked at."""
_BLIND_TO_CASE: Final = sys.platform == "darwin"


@recordclass
class Tree:
    """What is known of all that is below a root, as of a generation; `None` before the first look."""

    root: str
    entries: dict[str, PathReading] = field(default_factory=dict[str, PathReading])
    generation: int | None = None
    ignores: Ignores = field(default_factory=Ignores)
    ignored: set[str] = field(default_factory=set[str])
    """Paths below that were found to be ignored, be they known or not."""
    rules: dict[str, object] = field(default_factory=dict[str, object])
    """By which the rules of a directory are known to be the same."""
    has_git: bool = False
    has_ignored: bool = False
    out_of_sight: str = ""
    """A path that could not be looked at or into, if there was any."""

    def load(self, entries: dict[str, PathReading], generation: int | None, ignores: Ignores) -> None:
        """Take what is known from the store."""
        self.entries, self.generation, self.ignores = entries, generation, ignores
        self.ignored = set()
        self.rules = dict.fromkeys((*ignores.texts, *ignores.tops), "not read yet")
        self.find_ignored(self.root)

    def put(self, path: str, entry: PathReading | None) -> None:
        """Note what is known of a path now."""
        if entry is None:
            self.entries.pop(path, None)
            return
        self.entries[path] = entry
        if entry.state[:1] == DIRECTORY and self.ignores.ignores(path, True):
            self.ignored.add(path)

    def find_ignored(self, directory: str) -> None:
        """Find which known directories are ignored: what is known stays so, what is made in them is not."""
        below = f"{directory}/"
        for path, entry in self.entries.items():
            if entry.state[:1] == DIRECTORY and path.startswith(below) and self.ignores.ignores(path, True):
                self.ignored.add(path)


@valueclass
class Bounds:
    """What is looked at."""

    max_file_bytes: int
    max_files: int
    max_tree_bytes: int
    ignored: bool
    passed_over: frozenset[str] = frozenset()
    """Absolute paths that are none of the person's files."""


class TooMuch(Exception):
    """A tree is larger than the bounds; the text is one sentence."""


class OutOfSight(Exception):
    """A root cannot be looked at, perhaps for a while; the text is one sentence."""


@recordclass
class IndexWalk:
    """One walk over a tree: what is new or may have changed, and what is gone.

    `old_rules` are those of before, where they have changed since; `earlier` those with which turns began:
    what these do not ignore is looked at, up to a tenth of the bounds.
    """

    tree: Tree
    bounds: Bounds
    new: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    gone: set[str] = field(default_factory=set[str])
    earlier: Sequence[Ignores] = ()
    old_rules: Ignores | None = None
    lost: set[str] = field(default_factory=set[str])
    """Directories in which git had its own, and has no more."""
    closed: set[str] = field(default_factory=set[str])
    """What is out of sight, and with `opened` what is so no more; each path ends with a slash."""
    opened: list[str] = field(default_factory=list[str])
    _seen: set[str] = field(default_factory=set[str])
    _bytes: int = 0
    _files_of_earlier: int = 0
    _bytes_of_earlier: int = 0

    def go(self) -> None:
        """Walk over all of it.

        Raises:
            TooMuch: as soon as the bounds are passed. OutOfSight: where the root cannot be looked at.
        """
        self.tree.has_git = self.tree.has_ignored = False
        tops: set[str] = set()
        with reaching() as reach:
            # The name of the root itself is not part of the tree: whoever removes it removes what is in it.
            try:
                if self.tree.generation is None:
                    self.tree.ignores, self.tree.rules = read_above(self.tree.root), {}
                tops |= self.tree.ignores.tops
                above, name = reach.entry(self.tree.root[1:])
                self._enter(above, name, self.tree.root, 0)
            except OSError as error:
                self._close(self.tree.root, error)
        # Only known paths are seen, so as many are the same ones: most looks need no comparison.
        is_whole = len(self._seen) == len(self.tree.entries)
        gone = () if is_whole else self.tree.entries.keys() - self._seen
        closed = tuple(self.closed)
        self.gone = {path for path in gone if not path.startswith(closed)}
        self.tree.out_of_sight = min(self.closed, default="").rstrip("/")
        for top in tops & self.gone:
            self._read_rules(top, None, is_top=False)
        if self.tree.root in tops and not mode_at(Path(self.tree.root)):
            self._read_rules(self.tree.root, None, is_top=False)
        self.lost = tops - self.tree.ignores.tops

    def _enter(self, above: Directory, name: str, path: str, depth: int) -> None:
        if depth >= _DEEPEST:
            self._close(path)
            return
        try:
            with closing(above.child(name)) as directory:
                below = self._list(directory, f"{path}/")
                known = self.tree.entries.get(path)
                if known and (known.state == OUT_OF_SIGHT or (known.racy and known.state[:1] == DIRECTORY)):
                    self.opened.append(f"{path}/")
                for each in below:
                    self._enter(directory, each, f"{path}/{each}", depth + 1)
        except OSError as error:
            self._close(path, error)
            self.changed += [path] * (path in self.tree.entries)

    def _close(self, path: str, error: OSError | None = None) -> None:
        """Note that a path and what is below it is out of sight, unless the error says that it is gone.

        A disk may be broken, and a server that is mounted there may not answer.

        Raises:
            OSError: the error, where it is this process that can do no more. OutOfSight: for the root.
        """
        if error is not None:
            if error.errno in NOTHING_THERE:
                return
            if error.errno in _OUT_OF_MEANS:
                raise error
            if path == self.tree.root:
                raise OutOfSight(f"{path} cannot be looked at: {error.strerror}")
        self.closed.add(f"{path}/")
        if path in self.tree.entries:
            self._seen.add(path)

    def _list(self, directory: Directory, prefix: str) -> list[str]:
        """Go through one directory, and return those in it to enter."""
        below: list[str] = []
        unknown: list[tuple[str, bool, int]] = []
        has_git = self._scan(directory, prefix, below, unknown)
        rules = prefix + IGNORE_FILE
        is_there = rules in self._seen or any(each[0] == IGNORE_FILE for each in unknown)
        self._read_rules(prefix[:-1], rules if is_there else None, is_top=has_git)
        for name, is_directory, size in unknown:
            path = prefix + name
            if self._covers(prefix, name, is_directory) or self._was_covered(path, is_directory, size):
                self._add(path, size)
                if is_directory:
                    below.append(name)
        return below

    def _scan(
        self, directory: Directory, prefix: str, below: list[str], unknown: list[tuple[str, bool, int]]
    ) -> bool:
        """Compare each entry with what is known of it; return whether git has its own among them.

        This runs for each file at each look, so nothing in it is done twice or in a function of its own.
        """
        find, see, passed_over = self.tree.entries.get, self._seen.add, self.bounds.passed_over
        has_git, most, total, directories = False, self.bounds.max_file_bytes, 0, stat.S_IFDIR
        with directory.scan() as scanned:
            for entry in scanned:
                name = entry.name
                path = prefix + name
                known = find(path)
                if known is None and (path in passed_over or (name[0] == "." and is_own(name))):
                    has_git = has_git or is_git(name)
                    continue
                try:
                    about = entry.stat(follow_symlinks=False)
                except OSError as error:
                    self._close(path, error)
                    # Noted as there: a file that can be read later was not made by the step before that.
                    unknown += [(name, False, 0)] * (known is None)
                    continue
                mode, size = about.st_mode, about.st_size
                is_directory = mode & _TYPE == directories
                if known is None:
                    unknown.append((name, is_directory, size))
                    continue
                if is_directory and path in passed_over:
                    continue
                if is_directory:
                    below.append(name)
                    signature = (0, 0, 0, about.st_ino, mode)
                else:
                    total += size if size <= most else 0
                    signature = (size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, mode)
                see(path)
                if known[1] != signature or known[2]:
                    self.changed.append(path)
        self._bytes += total
        self._check_bounds()
        return has_git

    def _add(self, path: str, size: int) -> None:
        self.new.append(path)
        if size <= self.bounds.max_file_bytes:
            self._bytes += size
        self._check_bounds()

    def _check_bounds(self) -> None:
        if len(self._seen) + len(self.new) > self.bounds.max_files:
            raise TooMuch(f"{self.tree.root} holds more than {self.bounds.max_files:,} files")
        if self._bytes > self.bounds.max_tree_bytes:
            raise TooMuch(f"{self.tree.root} holds more than {self.bounds.max_tree_bytes:,} bytes")

    def _read_rules(self, directory: str, rules: str | None, *, is_top: bool) -> None:
        """Read the rules of a directory if they are not those that are known."""
        tree = self.tree
        tree.has_git = tree.has_git or is_top
        try:
            signature = signature_of(Path(rules).lstat()) if rules else None
        except OSError:
            # What cannot be read now leaves the rules as they are known.
            return
        now = (signature, is_top) if signature or is_top else None
        if tree.rules.get(directory) == now:
            return
        tree.rules[directory] = now
        text = b"" if self.bounds.ignored else read_rules(Path(directory), is_top=is_top)
        if text == tree.ignores.texts.get(directory, b"") and is_top == (directory in tree.ignores.tops):
            return
        if self.old_rules is None:
            self.old_rules = tree.ignores.copy()
        tree.ignores.texts[directory] = text
        (tree.ignores.tops.add if is_top else tree.ignores.tops.discard)(directory)
        tree.ignored = {each for each in tree.ignored if not each.startswith(f"{directory}/")}
        tree.find_ignored(directory)

    def _covers(self, prefix: str, name: str, is_directory: bool) -> bool:
        """Return whether a path that is not known yet is one to look at."""
        tree, path = self.tree, prefix + name
        if path in tree.ignored:
            tree.has_ignored = True
            return False
        if prefix[:-1] in tree.ignored or tree.ignores.ignores(path, is_directory):
            tree.ignored.add(path)
            tree.has_ignored = True
            return False
        return True

    def _was_covered(self, path: str, is_directory: bool, size: int) -> bool:
        """Return whether a path that is ignored now would not be by the rules with which a turn began."""
        rules = self.tree.ignores
        if not any(each != rules and each.covers(path, is_directory) for each in self.earlier):
            return False
        self._files_of_earlier += 1
        self._bytes_of_earlier += size if size <= self.bounds.max_file_bytes else 0
        if (
            10 * self._files_of_earlier > self.bounds.max_files
            or 10 * self._bytes_of_earlier > self.bounds.max_tree_bytes
        ):
            raise TooMuch(f"{self.tree.root} holds too much that is ignored since a while ago")
        return True

    def was_hidden(self, path: str, is_directory: bool) -> bool:
        """Return whether a path that is new may have been there before, and only ignored or out of sight."""
        was_ignored = self.old_rules is not None and not self.old_rules.covers(path, is_directory)
        return was_ignored or path.startswith((*self.opened,))


def is_git(name: str) -> bool:
    """Return whether a name is the one in which git keeps what is its own."""
    return name == GIT or (_BLIND_TO_CASE and name.lower() == GIT)


def is_own(path: str) -> bool:
    """Return whether a path is git's or the library's own, at any level."""
    return any(is_git(name) or is_temporary(name) for name in path.split("/"))


def read_all(paths: Iterable[str], most: int) -> Iterator[tuple[str, PathReading | None]]:
    """Read what each of these paths holds."""
    with reaching() as reach:
        for path in paths:
            yield path, read_path(reach, path, most)


def is_unchanged(reach: FilesBelow, path: str, found: PathReading | None) -> bool:
    """Return whether a path still has the signature that was read."""
    about = stat_path(reach, path)
    if about is None or found is None:
        return about is found
    return found.signature == signature_of(about)


def mode_at(path: Path) -> int:
    """Return the kind and mode of what can be seen at a path; 0 where nothing can."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def find_still(reach: FilesBelow, path: str, known: PathReading | None) -> PathReading | None:
    """Return what is known of a path if nothing says that it changed."""
    if known is None or known.racy:
        return None
    return known if is_unchanged(reach, path, known) else None


def size_at(path: str, most: int) -> int:
    """Return the bytes of a file to be kept; 0 for none, and for one of more than `most`."""
    try:
        size = Path(path).lstat().st_size
    except OSError:
        return 0
    return size if size <= most else 0


def describe_refused(root: str) -> str | None:
    """Return in one sentence why a directory is never looked at whole; `None` for any other."""
    try:
        home = Path.home()
    except RuntimeError:
        # HOME is not set, and the user has no entry that says so.
        home = Path("/")
    homes = {home, home.resolve()}
    if any(each.is_relative_to(root) for each in homes):
        return f"{root} is the home directory or above it, and is not looked at whole"
    return None
