"""Keep protected paths from being made, and leave no trace of it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Final
from uuid import uuid4

from deepagents._values import field, recordclass
from deepagents_sandbox.obeyed import Obeyed, find_new_repositories, find_obeyed

# What `git init` and `git clone` write, and what runs nothing. Other keys of a new configuration are dropped:
# git on the host would run what core.fsmonitor, core.hooksPath, filters and aliases name.
_GIT_KEYS: Final = re.compile(
    r"\s*(\[(core|user|init|remote \"[\w./-]+\"|branch \"[\w./-]+\")\]"
    r"|(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks) = \w+"
    r"|(name|email|fetch|remote|merge|defaultBranch) = [^\\]*|url = (?!.*::)[^\\]*)\s*",
    re.IGNORECASE,
)
_MOST_OF_A_CONFIG: Final = 65_536
# An empty directory, which git does not see, that nobody may write in; the sticky bit tells it from the
# user's.
_PLACEHOLDER: Final = 0o1555
# Root owns these on the host, so a command of root can change their modes, though not what they do.
_DEVICES: Final = ("full", "null", "random", "tty", "urandom", "zero")
_OWNERS_RIGHTS: Final = 0o700
# Others hold the lock of a placeholder alone only while they remove it.
_SECONDS_TO_LOCK: Final = 5.0
_PAUSE: Final = 0.002


@contextmanager
def hold_devices() -> Generator[None]:
    """Give the devices of this machine back the modes that they had, if a command of root changed them."""
    modes = {} if os.geteuid() else _device_modes()
    try:
        yield
    finally:
        for path, mode in modes.items():
            _restore_mode(path, mode)


def _restore_mode(path: str, mode: int) -> None:
    with suppress(OSError):
        if os.stat(path).st_mode != mode:
            os.chmod(path, stat.S_IMODE(mode))


@lru_cache(maxsize=1)
def _device_modes() -> dict[str, int]:
    # Asked once, before the first command: later, one that runs at the same time may have changed them.
    modes: dict[str, int] = {}
    for name in _DEVICES:
        with suppress(OSError):
            modes[f"/dev/{name}"] = os.stat(f"/dev/{name}").st_mode
    return modes


@recordclass
class Protection:
    """What must not be changed below a root: what is there, what must not be made, what is removed if it was.

    A path whose directory is missing too is not kept from being made, or `git init` could not work: what was
    made there is gone after the call. Links cannot be held either; they are put back. A repository of this
    root may lie in another place that is `writable`.
    """

    root: Path
    existing: list[Path] = field(default_factory=list[Path])
    missing: list[Path] = field(default_factory=list[Path])
    unborn: list[str] = field(default_factory=list[str])
    links: dict[str, str] = field(default_factory=dict[str, str])
    protected: Sequence[str] = ()
    writable: Sequence[Path] = ()
    obeyed: Obeyed = field(default_factory=Obeyed)
    _noted: Sequence[Path] = ()

    @classmethod
    def look(cls, root: Path, protected: Sequence[str], writable: Sequence[Path]) -> Protection:
        """Look at what is there of the protected paths; no link on the way is followed."""
        found = cls(root, protected=protected, writable=writable, obeyed=find_obeyed(root, protected))
        for relative in found.obeyed.paths:
            # What a running command made is removed at its end, and with it the mount of another one on it.
            if running_unborn().has(root / relative):
                found.unborn.append(relative)
            else:
                found._look_at(relative)
        return found

    def _look_at(self, relative: str) -> None:
        parts = relative.split("/")
        for count in range(1, len(parts) + 1):
            part, is_last = "/".join(parts[:count]), count == len(parts)
            try:
                status = os.lstat(f"{self.root}/{part}")
            except OSError:
                if is_last and self.obeyed.paths.get(relative, True):
                    self.missing.append(self.root / part)
                else:
                    self.unborn.append(relative)
                return
            if stat.S_ISLNK(status.st_mode):
                self.links[part] = os.readlink(self.root / part)
                self._look_behind(relative)
                return
            if is_last and _is_placeholder(status):
                self.missing.append(self.root / part)
            elif is_last or not stat.S_ISDIR(status.st_mode):
                # A file `.git` names the directory where git finds hooks and settings.
                if (path := self.root / part) not in self.existing:
                    self.existing.append(path)
                return

    def _look_behind(self, relative: str) -> None:
        real = Path(os.path.realpath(self.root / relative))
        if real != self.root and real.is_relative_to(self.root):
            behind = real.relative_to(self.root).as_posix()
            if behind != relative:
                self._look_at(behind)

    @property
    def made(self) -> list[Path]:
        """What a command may make, and must not leave."""
        return [self.root / each for each in self.unborn]

    def covers(self, path: Path) -> bool:
        """Return whether a path is one of these; what is there now may be a placeholder."""
        return path in self.existing or path in self.missing

    @contextmanager
    def hold(self) -> Generator[Sequence[Path]]:
        """Keep placeholders where nothing may be made, and yield what a command must not change."""
        locks: list[int] = []
        for path in [*self.missing]:
            try:
                lock = self._hold_placeholder(path)
                locks += [lock] if lock is not None else []
            except OSError:
                # Its directory is gone or closed by now: a command may still make it anew.
                self.missing.remove(path)
                self.unborn.append(path.relative_to(self.root).as_posix())
        try:
            yield (*self.existing, *self.missing)
        finally:
            for each in locks:
                os.close(each)

    def begin(self) -> None:
        """Note for other commands what this one may make, and must not leave."""
        self._noted = self.made
        running_unborn().add(self._noted)

    def end(self) -> None:
        """Take that back."""
        running_unborn().remove(self._noted)

    def restore(self) -> None:
        """Put links back, and remove what was made of paths that were not there."""
        for relative, target in self.links.items():
            with suppress(OSError):
                self._put_back(relative, target)
        for relative in self.unborn:
            with suppress(OSError):
                self.remove_new(relative)
        in_git = [each.removeprefix(".git/") for each in self.protected if each.startswith(".git/")]
        for place, git in find_new_repositories(self.root, self.obeyed.repositories, self.writable):
            for name in in_git:
                with suppress(OSError):
                    (self if place == self.root else Protection(place)).remove_new(f"{git}/{name}", git)

    def _hold_placeholder(self, path: Path) -> int | None:
        """Make a placeholder, or take the one that is there; return its lock, which keeps it from removal.

        The lock is not on the directory that it is in: that one is what the file tools lock to write there.
        """
        deadline = time.monotonic() + _SECONDS_TO_LOCK
        with open_below(self.root, path.parent.relative_to(self.root).parts) as directory:
            while True:
                with suppress(BlockingIOError, FileNotFoundError):
                    return _take_placeholder(directory, path.name)
                if time.monotonic() > deadline:
                    raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
                time.sleep(_PAUSE)

    def tidy(self) -> None:
        """Remove the placeholders, unless another command that runs here needs them; the last one does."""
        for path in self.missing:
            with (
                suppress(OSError),
                open_below(self.root, path.parent.relative_to(self.root).parts) as directory,
            ):
                lock = _lock_placeholder(directory, path.name, fcntl.LOCK_EX)
                if lock is None:
                    continue
                try:
                    os.rmdir(path.name, dir_fd=directory)
                finally:
                    os.close(lock)

    def _put_back(self, relative: str, target: str) -> None:
        *parents, name = relative.split("/")
        with open_below(self.root, parents) as directory:
            with suppress(OSError):
                if os.readlink(name, dir_fd=directory) == target:
                    return
            with suppress(FileNotFoundError):
                remove(directory, name)
            os.symlink(target, name, dir_fd=directory)

    def remove_new(self, relative: str, repository: str = ".git") -> None:
        """Remove what was made of a path that was not there, were it a link or a file on the way to it."""
        parts = relative.split("/")
        # Mostly nothing was made, and this raises. What a command has closed is opened below.
        with suppress(PermissionError):
            os.lstat(f"{self.root}/{parts[0]}")
        for count, name in enumerate(parts, 1):
            with open_below(self.root, parts[: count - 1]) as directory:
                is_last = count == len(parts)
                if not is_last and stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                    continue
                is_config = is_last and relative == f"{repository}/config"
                is_kept = is_config and _keep_safe_keys(directory, name)
                if not is_kept and "/".join(parts[:count]) not in self.links:
                    remove(directory, name)
                return


@recordclass
class PathsOfCommands:
    """Paths that matter to the commands that run in this process."""

    _paths: Counter[Path] = field(default_factory=Counter[Path])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def has(self, path: Path) -> bool:
        """Return whether one of them noted this path."""
        return self._paths[path] > 0

    def add(self, paths: Sequence[Path]) -> None:
        """Note the beginning of a command."""
        with self._lock:
            self._paths.update(paths)

    def remove(self, paths: Sequence[Path]) -> None:
        """Note its end."""
        with self._lock:
            self._paths.subtract(paths)
            self._paths = +self._paths


@cache
def running_unborn() -> PathsOfCommands:
    """Return what commands may make and must not leave; several sandboxes may have the same root."""
    return PathsOfCommands()


@cache
def running_mounts() -> PathsOfCommands:
    """Return what commands are kept from by mounts."""
    return PathsOfCommands()


def _take_placeholder(directory: int, name: str) -> int | None:
    """Make a placeholder, or take the one that is there; `None` for anything else of this name.

    Raises:
        BlockingIOError, FileNotFoundError: when another command removes it just now.
    """
    with suppress(FileExistsError):
        os.mkdir(name, _PLACEHOLDER, dir_fd=directory)
    if not _is_placeholder(os.lstat(name, dir_fd=directory)):
        return None
    lock = _lock_placeholder(directory, name, fcntl.LOCK_SH)
    if lock is None:
        raise BlockingIOError
    return lock


def _lock_placeholder(directory: int, name: str, how: int) -> int | None:
    """Lock a placeholder at once, and return its descriptor; `None` when it is none, or not there any more.

    Raises:
        BlockingIOError: when another has the lock.
    """
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
        # Before it was locked, it may have been removed and made anew.
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if _is_placeholder(now) and os.path.samestat(now, os.fstat(fd)):
            kept, fd = fd, -1
            return kept
        return None
    finally:
        if fd >= 0:
            os.close(fd)


def _is_placeholder(status: os.stat_result) -> bool:
    mode = status.st_mode
    return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX) and not mode & 0o222


@contextmanager
def open_below(root: Path, parts: Sequence[str] = ()) -> Generator[int]:
    """Open a directory below a root by way of no link, with the rights that its owner may have taken away."""
    directory = _open_directory(str(root), None)
    try:
        for part in parts:
            below = _open_directory(part, directory)
            os.close(directory)
            directory = below
        yield directory
    finally:
        os.close(directory)


def _open_directory(name: str, above: int | None) -> int:
    flags = os.O_DIRECTORY | os.O_NOFOLLOW
    if not hasattr(os, "O_PATH"):
        # macOS changes the mode of a link itself, so nothing need be held open for it.
        if stat.S_ISDIR((status := os.lstat(name, dir_fd=above)).st_mode) and _is_closed(status):
            os.chmod(name, _add_owners_rights(status), dir_fd=above, follow_symlinks=False)
        return os.open(name, os.O_RDONLY | flags, dir_fd=above)
    path = os.open(name, os.O_PATH | flags, dir_fd=above)
    try:
        status = os.fstat(path)
        if _is_closed(status):
            # By its number, for the name may be a link by now.
            os.chmod(f"/proc/self/fd/{path}", _add_owners_rights(status))
        return os.open(".", os.O_RDONLY | flags, dir_fd=path)
    finally:
        os.close(path)


def _is_closed(status: os.stat_result) -> bool:
    """Return whether a directory is this user's, who may nonetheless not do everything in it."""
    return status.st_mode & _OWNERS_RIGHTS != _OWNERS_RIGHTS and status.st_uid == os.geteuid()


def _add_owners_rights(status: os.stat_result) -> int:
    return stat.S_IMODE(status.st_mode) | _OWNERS_RIGHTS


def _empty(below: int, directory: int) -> Iterator[str]:
    """Remove the files of a directory, move its directories to one above, and yield their new names."""
    for entry in os.listdir(below):
        if not stat.S_ISDIR(os.lstat(entry, dir_fd=below).st_mode):
            os.unlink(entry, dir_fd=below)
            continue
        # A tree may be deeper than a path is long.
        os.close(_open_directory(entry, below))
        name = f".removed-{uuid4().hex}"
        os.rename(entry, name, src_dir_fd=below, dst_dir_fd=directory)
        yield name


def remove(directory: int, name: str) -> None:
    """Remove a file or a tree: of any depth, by way of no link, whatever the modes in it are."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
        os.unlink(name, dir_fd=directory)
        return
    waiting = [name]
    while waiting:
        each = waiting.pop()
        below = _open_directory(each, directory)
        try:
            waiting += _empty(below, directory)
        finally:
            os.close(below)
        os.rmdir(each, dir_fd=directory)


def _keep_safe_keys(directory: int, name: str) -> bool:
    """Drop what git on the host might run from a configuration; `False` where it is not a file to keep."""
    try:
        file = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except OSError:
        return False
    with os.fdopen(file, "r+b") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_OF_A_CONFIG or status.st_nlink != 1:
            return False
        lines = opened.read().decode(errors="replace").splitlines(keepends=True)
        opened.seek(0)
        opened.truncate()
        opened.write("".join(line for line in lines if _GIT_KEYS.fullmatch(line)).encode())
    return True
