"""Merge what was changed in a copy of a directory back into it, path by path.

`merge_entries` decides about three states of a path, and `put_entry` writes one.
Nothing is reached through a link, and what is no longer as it was found stays.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

from deepagents._text import merge3
from deepagents._values import valueclass
from deepagents.backends._bytes import is_binary, temporary_name
from deepagents.backends._directory import Directory, FilesBelow, open_directory, write_whole
from deepagents.backends.filesystem.pages import read_all

_OURS: Final = "ours, of this merge: 5f0c1d3e"
_THEIRS: Final = "theirs, of this merge: 5f0c1d3e"


@valueclass
class FileEntry:
    """A file: its bytes and its mode."""

    content: bytes
    mode: int


@valueclass
class LinkEntry:
    """A symbolic link."""

    target: str


@valueclass
class OtherEntry:
    """What is merged with nothing: a directory, a pipe, a device."""


Entry: TypeAlias = FileEntry | LinkEntry | OtherEntry | None
"""What is at a path; `None` where nothing is."""


def merge_entries(base: Entry, ours: Entry, theirs: Entry) -> tuple[Entry, bool]:
    """Return what both sides made of a path together, and whether that was possible; else it is `ours`.

    Text is merged by lines, modes by themselves. Of a link, of bytes that are no text and of what one side
    removed, one side alone may have changed it.
    """
    if theirs in (base, ours):
        return ours, True
    if ours == base:
        return theirs, not isinstance(theirs, OtherEntry)
    if not (isinstance(base, FileEntry) and isinstance(ours, FileEntry) and isinstance(theirs, FileEntry)):
        return ours, False
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    content = _merge_bytes(base.content, ours.content, theirs.content)
    return (ours, False) if content is None else (FileEntry(content, mode), True)


def _merge_bytes(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    if any(map(is_binary, (base, ours, theirs))):
        return None
    try:
        merged = merge3(base.decode(), ours.decode(), theirs.decode(), (_OURS, _THEIRS))
    except UnicodeDecodeError:
        return None
    return None if _OURS in merged or _THEIRS in merged else merged.encode()


def read_entry(root: Path, path: str) -> Entry:
    """Return what is at a path below a directory; nothing behind a link counts as there."""
    try:
        with _entry(root, path) as (directory, name):
            return _read(directory, name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def put_entry(root: Path, path: str, entry: Entry, *, found: Entry) -> bool:
    """Put an entry at a path in one step, if it is still as it was found; return whether it was.

    Directories are made where they are missing; one that a removal leaves empty is removed.

    Raises:
        OSError: where it cannot be written; nothing has changed then.
    """
    try:
        with _entry(root, path, makes=entry is not None) as (directory, name):
            if _read(directory, name) != found:
                return False
            if entry is None:
                directory.unlink(name)
            else:
                _replace(directory, name, entry)
            directory.sync()
    except NotADirectoryError:
        return False
    if entry is None:
        _remove_empty(root, path)
    return True


def write_new(path: Path, entry: Entry) -> None:
    """Write an entry into a tree in which no one works yet, where nothing is; `None` writes nothing.

    Raises:
        OSError: where it cannot be written.
    """
    if isinstance(entry, FileEntry | LinkEntry):
        path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(entry, FileEntry):
        path.write_bytes(entry.content)
        path.chmod(entry.mode)
    elif isinstance(entry, LinkEntry):
        path.symlink_to(entry.target)


def _replace(directory: Directory, name: str, entry: Entry) -> None:
    temporary = temporary_name()
    try:
        if isinstance(entry, LinkEntry):
            directory.symlink(entry.target, temporary)
        elif isinstance(entry, FileEntry):
            write_whole(directory, temporary, entry.content, entry.mode)
        directory.rename(temporary, name)
    except OSError:
        with suppress(OSError):
            directory.unlink(temporary)
        raise


def _read(directory: Directory, name: str) -> Entry:
    try:
        about = directory.stat(name)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(about.st_mode):
        return LinkEntry(directory.readlink(name) or "")
    if not stat.S_ISREG(about.st_mode):
        return OtherEntry()
    fd = directory.open(name)
    try:
        return FileEntry(read_all(fd), about.st_mode & 0o777)
    finally:
        os.close(fd)


@contextmanager
def _entry(root: Path, path: str, *, makes: bool = False) -> Generator[tuple[Directory, str]]:
    with open_directory(root) as base, FilesBelow(base, makes=makes) as files:
        yield files.entry(path)


def _remove_empty(root: Path, path: str) -> None:
    while path := path.rpartition("/")[0]:
        try:
            with _entry(root, path) as (above, name):
                above.rmdir(name)
        except OSError:
            return
