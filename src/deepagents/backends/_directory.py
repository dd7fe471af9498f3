"""Hold a directory on disk open, and reach names through it without following a link.

Where the system can open relative to a directory (Linux, macOS), a name means the entry that the open
directory holds, whatever happens to the path above it. Elsewhere (Windows) it is a path, checked before use.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from deepagents.backends._bytes import write_all

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# O_NONBLOCK: opening a named pipe would otherwise wait until something writes to it.
_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | _NO_FOLLOW
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _COMMON
# Linux can open a directory that may be entered but not listed only with O_PATH.
_PASS_THROUGH = getattr(os, "O_PATH", 0)
# A name is given through /proc, by the number of the open file.
_UNNAMED = getattr(os, "O_TMPFILE", 0) if Path("/proc/self/fd").is_dir() else 0
# What Windows answers when a name that is not a link is read as one (ERROR_NOT_A_REPARSE_POINT).
_NOT_A_REPARSE_POINT = 4390


class HandleDirectory:
    """A directory held open by a descriptor. A name is one component; failures are `OSError`."""

    __slots__ = ("_fd", "_may_scan")

    def __init__(self, fd: int, may_scan: bool = True) -> None:
        self._fd = fd
        self._may_scan = may_scan

    def child(self, name: str) -> HandleDirectory:
        """Open a directory below; a link is refused with `NotADirectoryError`."""
        try:
            return HandleDirectory(os.open(name, _DIRECTORY, dir_fd=self._fd))
        except PermissionError:
            # A directory with `x` alone may still be on the way to one that can be read.
            if not _PASS_THROUGH:
                raise
            fd = os.open(name, _DIRECTORY | _PASS_THROUGH, dir_fd=self._fd)
            return HandleDirectory(fd, may_scan=False)
        except OSError as error:
            # O_NOFOLLOW reports a link as ELOOP; callers ask only whether this is a directory.
            if error.errno == errno.ELOOP:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
            raise

    def scan(self) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        """Walk over the entries."""
        if not self._may_scan:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return os.scandir(self._fd)

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
        """Open a file and return its descriptor; a link is refused, a pipe does not block."""
        return os.open(name, flags | _COMMON, mode, dir_fd=self._fd)

    def open_unnamed(self, mode: int) -> int | None:
        """Open a new file that has no name yet, by which others could reach it, where the system can."""
        if not _UNNAMED:
            return None
        try:
            return os.open(".", os.O_WRONLY | _UNNAMED | _COMMON, mode, dir_fd=self._fd)
        except OSError:
            return None

    def link(self, fd: int, name: str) -> None:
        """Give an open file a name that is not there yet."""
        os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=self._fd)

    def stat(self, name: str) -> os.stat_result:
        """Describe an entry itself, not what it links to."""
        # The root is an entry without a name, which only `.` reaches from its own descriptor.
        return os.stat(name or ".", dir_fd=self._fd, follow_symlinks=False)

    def readlink(self, name: str) -> str | None:
        """Return the target of a link, `None` for anything else."""
        return _target(lambda: os.readlink(name, dir_fd=self._fd))

    def may_write(self, name: str) -> bool:
        """Return whether this process may write to a file."""
        # By default access() asks for the real user, who is another one in a set-uid program.
        as_ourselves = os.access in os.supports_effective_ids
        return os.access(name, os.W_OK, dir_fd=self._fd, effective_ids=as_ourselves)

    def mkdir(self, name: str) -> None:
        """Make a directory."""
        os.mkdir(name, dir_fd=self._fd)

    def symlink(self, target: str, name: str) -> None:
        """Make a link."""
        os.symlink(target, name, dir_fd=self._fd)

    def chmod(self, name: str, mode: int) -> None:
        """Set the permissions of a file or a directory; a link is refused."""
        if os.chmod in os.supports_follow_symlinks:
            os.chmod(name, mode, dir_fd=self._fd, follow_symlinks=False)
            return
        # Linux changes no mode by a name without following a link, but by an open file it does.
        fd = os.open(name, _PASS_THROUGH | _COMMON, dir_fd=self._fd)
        try:
            Path(f"/proc/self/fd/{fd}").chmod(mode)
        finally:
            os.close(fd)

    def rename(self, old: str, new: str) -> None:
        """Move an entry over another in one step."""
        os.rename(old, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def take(self, path: Path, name: str) -> None:
        """Move a file from elsewhere over an entry here in one step."""
        os.rename(path, name, dst_dir_fd=self._fd)

    def rmdir(self, name: str) -> None:
        """Remove a directory that is empty."""
        os.rmdir(name, dir_fd=self._fd)

    def unlink(self, name: str) -> None:
        """Remove a file or a link."""
        os.unlink(name, dir_fd=self._fd)

    def remove_tree(self, name: str) -> None:
        """Remove a directory and all below it."""
        # shutil.rmtree needs a frame and a descriptor for each level, and fails within a very deep tree. Here
        # only the lowest directory is open; the way up is its `..`, if that is where we came from.
        here = os.open(name, _DIRECTORY, dir_fd=self._fd)
        way: list[tuple[str, tuple[int, int], list[str]]] = [(name, _identity(here), _remove_files(here))]
        try:
            while way:
                if below := way[-1][2]:
                    name = below.pop()
                    deeper = os.open(name, _DIRECTORY, dir_fd=here)
                    here = _instead_of(here, deeper)
                    way.append((name, _identity(here), _remove_files(here)))
                    continue
                name, _, _ = way.pop()
                above = os.open("..", _DIRECTORY, dir_fd=here) if way else os.dup(self._fd)
                here = _instead_of(here, above)
                # Another process may have moved the directory: `..` is then one that we must not empty.
                if way and _identity(here) != way[-1][1]:
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
                os.rmdir(name, dir_fd=here)
        finally:
            os.close(here)

    def sync(self) -> None:
        """Wait until the names themselves are on disk."""
        if not self._may_scan:
            return
        try:
            os.fsync(self._fd)
        except OSError as error:
            # Some file systems cannot sync a directory; the content itself is on disk by then.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise

    def lock(self) -> int | None:
        """Return a descriptor to hold an advisory lock on, if the system has such."""
        return self._fd

    def close(self) -> None:
        """Let go."""
        os.close(self._fd)


class PathDirectory:
    """The same for a directory known by its path, where the system cannot open relative to one."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def child(self, name: str) -> PathDirectory:
        below = self._path / name
        below.lstat()
        if below.is_symlink() or not below.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return PathDirectory(below)

    def scan(self) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        return os.scandir(self._path)

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
        path = self._path / name
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return os.open(path, flags | _COMMON, mode)

    def open_unnamed(self, mode: int) -> int | None:
        return None

    def link(self, fd: int, name: str) -> None:
        raise NotImplementedError

    def stat(self, name: str) -> os.stat_result:
        return (self._path / name).lstat()

    def readlink(self, name: str) -> str | None:
        return _target(lambda: str((self._path / name).readlink()))

    def may_write(self, name: str) -> bool:
        return os.access(self._path / name, os.W_OK)

    def mkdir(self, name: str) -> None:
        (self._path / name).mkdir()

    def symlink(self, target: str, name: str) -> None:
        (self._path / name).symlink_to(target)

    def chmod(self, name: str, mode: int) -> None:
        (self._path / name).chmod(mode)

    def rename(self, old: str, new: str) -> None:
        (self._path / old).replace(self._path / new)

    def take(self, path: Path, name: str) -> None:
        path.replace(self._path / name)

    def rmdir(self, name: str) -> None:
        (self._path / name).rmdir()

    def unlink(self, name: str) -> None:
        (self._path / name).unlink()

    def remove_tree(self, name: str) -> None:
        shutil.rmtree(self._path / name)

    def sync(self) -> None:
        return

    def lock(self) -> int | None:
        return None

    def close(self) -> None:
        return


Directory: TypeAlias = HandleDirectory | PathDirectory
BY_HANDLE = bool(_NO_FOLLOW) and {os.open, os.stat, os.rename, os.unlink} <= os.supports_dir_fd


@contextmanager
def open_directory(path: Path, *, by_handle: bool = BY_HANDLE) -> Generator[Directory]:
    """Open a trusted path; links in it are followed."""
    if not by_handle:
        yield PathDirectory(path.resolve(strict=True))
        return
    # The root is the user's own choice and may well be a link (such as /tmp on macOS).
    directory = HandleDirectory(os.open(path, _DIRECTORY & ~_NO_FOLLOW))
    try:
        yield directory
    finally:
        directory.close()


def write_whole(directory: Directory, name: str, content: bytes, mode: int) -> None:
    """Write a file that is not there yet, which others cannot read before it is whole.

    Raises:
        OSError: where it cannot be written; it is not there then.
    """
    fd = directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        write_all(fd, content)
        if hasattr(os, "fchmod"):
            os.fchmod(fd, mode)
        else:
            directory.chmod(name, mode)
        os.fsync(fd)
    except OSError:
        with suppress(OSError):
            directory.unlink(name)
        raise
    finally:
        os.close(fd)


class FilesBelow:
    """Reach many files below one directory by path, following no link.

    The way to the last file stays open, because the next one is most often in the same directory. With
    `makes`, directories are made where they are missing.
    """

    def __init__(self, base: Directory, *, makes: bool = False) -> None:
        self._base = base
        self._makes = makes
        self._way: list[tuple[str, Directory]] = []
        self._at = ""

    def __enter__(self) -> FilesBelow:
        return self

    def __exit__(self, *raised: object) -> None:
        self._back_to(0)

    def open(self, path: str) -> int:
        """Open a file by its path from the start."""
        directory, name = self.entry(path)
        return directory.open(name)

    def stat(self, path: str) -> os.stat_result:
        """Return what the system knows of a file, or of a link itself."""
        directory, name = self.entry(path)
        return directory.stat(name)

    def entry(self, path: str) -> tuple[Directory, str]:
        """Open the directory of a path, and return it with the name; it is closed when another is needed."""
        above, _, name = path.rpartition("/")
        return self._directory(above), name

    def _directory(self, path: str) -> Directory:
        if path != self._at:
            self._go(path)
        return self._way[-1][1] if self._way else self._base

    def _go(self, path: str) -> None:
        names = path.split("/") if path else []
        shared = 0
        for (name, _), wanted in zip(self._way, names, strict=False):
            if name != wanted:
                break
            shared += 1
        self._back_to(shared)
        self._at = "\n"  # No such path: what follows may fail halfway.
        for name in names[shared:]:
            above = self._way[-1][1] if self._way else self._base
            if self._makes:
                with suppress(FileExistsError):
                    above.mkdir(name)
            self._way.append((name, above.child(name)))
        self._at = path

    def _back_to(self, depth: int) -> None:
        while len(self._way) > depth:
            self._way.pop()[1].close()


def _identity(fd: int) -> tuple[int, int]:
    about = os.fstat(fd)
    return about.st_dev, about.st_ino


def _instead_of(old: int, new: int) -> int:
    os.close(old)
    return new


def _remove_files(fd: int) -> list[str]:
    """Remove all that is right in an open directory but its directories, and return these."""
    with os.scandir(fd) as entries:
        # Listed first: removing entries during a scan may make it skip others.
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if not is_directory:
            os.unlink(name, dir_fd=fd)
    return [name for name, is_directory in found if is_directory]


def _target(read: Callable[[], str]) -> str | None:
    try:
        return read()
    except OSError as error:
        # EINVAL is how POSIX says that the name is not a link; asking first would leave a moment for a race.
        if error.errno == errno.EINVAL or getattr(error, "winerror", None) == _NOT_A_REPARSE_POINT:
            return None
        raise
