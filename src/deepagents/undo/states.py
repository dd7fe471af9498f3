"""Describe what a path holds in a few bytes that can be compared, and read that from disk."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from deepagents.backends._directory import Directory, FilesBelow, open_directory

State: TypeAlias = bytes
"""One letter for the kind, four octal digits of the mode, and what tells two of a kind apart."""
Kind: TypeAlias = Literal["file", "directory", "link", "special"]
Signature: TypeAlias = tuple[int, int, int, int, int]
"""Size, modification time, change time, inode and mode: while these stay, so does the content."""

FILE: Final = b"f"
LARGE: Final = b"F"
DIRECTORY: Final = b"d"
LINK: Final = b"l"
SPECIAL: Final = b"s"
UNKNOWN: Final = b"?0000"
"""What a path held that was there before and was never read."""
OUT_OF_SIGHT: Final = SPECIAL + b"0000unreadable"
NOTHING_THERE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
_KINDS: Final[dict[bytes, Kind]] = {FILE: "file", LARGE: "file", DIRECTORY: "directory", LINK: "link"}
# Some file systems count time in steps of two seconds.
_RACY_NS: Final = 2_000_000_000


class PathReading(NamedTuple):
    """What was found at a path, or is known of it.

    `content` is what has to be kept of it, and none where that was done; `racy` asks to read it again.
    """

    state: State
    signature: Signature
    racy: bool = False
    content: bytes | None = None


def kind_of(state: State) -> Kind:
    """Return what a state is the state of."""
    return _KINDS.get(state[:1], "special")


def mode_of(state: State) -> int:
    """Return the permissions."""
    return int(state[1:5], 8)


def key_of(state: State) -> bytes:
    """Return what tells two states of a kind apart: the digest of a file, the target of a link."""
    return state[5:]


def is_directory(state: State | None) -> bool:
    """Return whether this is the state of a directory."""
    return state is not None and state[:1] == DIRECTORY


def is_kept(state: State | None) -> bool:
    """Return whether what this describes can be put back whole."""
    return state is None or state[:1] in (FILE, DIRECTORY, LINK)


def signature_of(about: os.stat_result) -> Signature:
    """Return what changes with the content; of a directory not its times: its entries are looked at."""
    if stat.S_ISDIR(about.st_mode):
        return (0, 0, 0, about.st_ino, about.st_mode)
    return (about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_mode)


def read_path(reach: FilesBelow, path: str, most: int) -> PathReading | None:
    """Read what an absolute path holds, files of at most `most` bytes; `None` where there is nothing.

    No link is followed, at its end or on the way.
    """
    try:
        directory, name = reach.entry(path[1:])
        return read_entry(directory, name, most)
    except OSError as error:
        # What lies out of sight may well be there.
        return None if error.errno in NOTHING_THERE else PathReading(OUT_OF_SIGHT, (0, 0, 0, 0, 0))


def stat_path(reach: FilesBelow, path: str) -> os.stat_result | None:
    """Describe what an absolute path holds, following no link; `None` where nothing can be seen."""
    try:
        return reach.stat(path[1:])
    except OSError:
        return None


def changed_at(path: str) -> int:
    """Return when a path has changed at the latest; of one that is gone, what it was in."""
    try:
        at = Path(path).lstat().st_ctime_ns
    except OSError:
        return changed_at(path.rpartition("/")[0] or "/")
    return at if at % 1_000_000_000 else at + _RACY_NS


def inode_at(path: str) -> int:
    """Return what tells a directory from another one in its place; 0 where nothing is."""
    try:
        return Path(path).lstat().st_ino
    except OSError:
        return 0


def read_entry(directory: Directory, name: str, most: int) -> PathReading | None:
    """Read what a name in an open directory holds; `None` where there is nothing."""
    try:
        about = directory.stat(name)
    except FileNotFoundError:
        return None
    try:
        if stat.S_ISREG(about.st_mode) and about.st_size <= most:
            return _read_file(directory, name, most)
        return _describe(about, directory.readlink(name) if stat.S_ISLNK(about.st_mode) else None)
    except FileNotFoundError:
        return None
    except OSError:
        # Not readable for this process: known, and left alone.
        return PathReading(_state(SPECIAL, about, b"unreadable"), signature_of(about))


def _describe(about: os.stat_result, target: str | None) -> PathReading:
    mode = about.st_mode
    if stat.S_ISDIR(mode):
        return PathReading(_state(DIRECTORY, about), signature_of(about))
    if target is not None:
        # A link has no mode of its own.
        return PathReading(LINK + b"0000" + os.fsencode(target), signature_of(about), _is_racy(about))
    if stat.S_ISREG(mode):
        times = f"{about.st_size}:{about.st_mtime_ns}:{about.st_ctime_ns}".encode()
        return PathReading(_state(LARGE, about, times), signature_of(about))
    return PathReading(_state(SPECIAL, about, b"%o" % stat.S_IFMT(mode)), signature_of(about))


def _read_file(directory: Directory, name: str, most: int) -> PathReading:
    fd = directory.open(name)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return _describe(about, None)
        content = b""
        while len(content) <= most and (more := os.read(fd, most + 1 - len(content))):
            content += more
        after = os.fstat(fd)
        # What grows while it is read is read again, and so is what was written a moment ago: another write
        # within the same tick of the clock would not be seen.
        racy = _is_racy(about) or signature_of(after) != signature_of(about)
        if len(content) > most:
            return _describe(after, None)
        return PathReading(_state(FILE, about, sha256(content).digest()), signature_of(about), racy, content)
    finally:
        os.close(fd)


def _is_racy(about: os.stat_result) -> bool:
    return time.time_ns() - max(about.st_mtime_ns, about.st_ctime_ns) < _RACY_NS


def _state(kind: bytes, about: os.stat_result, key: bytes = b"") -> State:
    return kind + b"%04o" % stat.S_IMODE(about.st_mode) + key


@contextmanager
def reaching() -> Generator[FilesBelow]:
    """Open what reaches any absolute path without following a link."""
    with open_directory(Path("/")) as top, FilesBelow(top) as reach:
        yield reach
