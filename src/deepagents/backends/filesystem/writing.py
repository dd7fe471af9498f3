"""Write, edit and delete files; to check what is there and to change it is one step, under a lock.

A file that is replaced holds the old content or the new one, whole, whatever happens. What is added at its
end is there whole or not at all, unless the process is killed meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from deepagents._text import Replacement, format_size, keep_line_endings, replace_each
from deepagents._values import field, recordclass
from deepagents.backends._bytes import (
    append_whole,
    is_binary,
    is_temporary,
    temporary_name,
    version_of,
    write_all,
)
from deepagents.backends._directory import Directory
from deepagents.backends._refusals import already_there, not_text, stale_version, undeletable_root
from deepagents.backends.filedata import encode_text, file_kind, validate_addition, validate_bytes
from deepagents.backends.filesystem.buffers import Buffers, Put, find_kept, find_unsaved, text_version
from deepagents.backends.filesystem.confined_dir import Entry, translate_os_errors
from deepagents.backends.filesystem.locks import hold_lock
from deepagents.backends.filesystem.pages import read_all
from deepagents.backends.filesystem.paths import ResolvedPath
from deepagents.backends.filesystem.reading import check_regular
from deepagents.backends.results import EditResult, WriteResult
from deepagents.errors import BackendError

# An hour is far beyond any write, so nothing that is still being written is removed.
FORGOTTEN_AFTER: Final = 3600.0
"""Seconds after which a temporary file was left by a writer that was killed."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# Without set-uid and set-gid: new content must not run with another user's rights.
_KEPT_MODE: Final = 0o1777
_MOST_TRIES: Final = 20
_DIRECTORIES_REMEMBERED = 1024


@recordclass
class Writer:
    """Writes below a root; files of more than `largest` bytes are not edited.

    What `stays` is written where it is: with another file in its place, a confined command that runs would
    find that one in place of what it was kept from.
    """

    largest: int
    stays: Callable[[Path], bool] = field(default=lambda path: False)
    buffers: Buffers | None = None
    _swept: dict[tuple[str, ...], float] = field(default_factory=dict[tuple[str, ...], float])

    def write(
        self,
        path: ResolvedPath,
        content: str,
        expected_version: str | None,
        *,
        creates: bool = False,
        like: ResolvedPath | None = None,
    ) -> WriteResult:
        """Make text the content of a file, with the line ends it had; a new one gets the mode of `like`."""
        data = encode_text(content)
        model = _stat_if_any(like) if like else None
        try:
            with self._open_to_change(path, "writing", make_parents=expected_version is None) as (
                entry,
                before,
            ):
                _, versions = self._find_text(path, entry, before)
                _check_version(path, before, expected_version, versions)
                if creates and before is not None:
                    raise already_there(f"File '{path.shown}'")
                if before and b"\n" in data and before.st_size <= self.largest:
                    data = _keep_line_ends(_read_content(entry), data, path)
                put = self._put(path, entry, data, before, model)
                return WriteResult(
                    path=path.shown,
                    version=put.version,
                    note=put.note,
                    created=before is None,
                    new_folders=entry.made,
                )
        except BackendError as error:
            if expected_version is None or error.code != "file_not_found":
                raise
            # With an expected version no directory is made, so a missing one says that the file is gone.
            raise stale_version(f"File '{path.shown}'", "was deleted") from error

    def write_bytes(self, path: ResolvedPath, content: bytes) -> None:
        """Make bytes the content of a file."""
        data = validate_bytes(path.shown, content)
        with self._open_to_change(path, "writing", make_parents=True) as (entry, before):
            self._put(path, entry, data, before)

    def append(self, path: ResolvedPath, content: str | bytes) -> str:
        """Add to the end of a file, all of it or nothing, and return the version."""
        given = validate_addition(path.shown, content)
        data = given.encode() if isinstance(given, str) else given
        with self._open_to_change(path, "writing", make_parents=True) as (entry, before):
            return _replace(entry, data, None) if before is None else _append(entry, data)

    def edit(
        self, path: ResolvedPath, edits: Sequence[Replacement], expected_version: str | None
    ) -> EditResult:
        """Replace exact texts."""
        for edit in edits:
            encode_text(edit.old)
            encode_text(edit.new)
        with self._open_to_change(path, "editing") as (entry, before):
            if before is None:
                raise FileNotFoundError
            self._check_size(before.st_size)
            unsaved, versions = self._find_text(path, entry, before)
            _check_version(path, before, expected_version, versions)
            content, count = replace_each(_read_text(entry, path) if unsaved is None else unsaved, edits)
            # Gives back byte for byte what was not UTF-8 when the file was read.
            data = content.encode("utf-8", "surrogateescape")
            put = self._put(path, entry, data, before)
            return EditResult(path=path.shown, occurrences=count, version=put.version, note=put.note)

    def _put(
        self,
        path: ResolvedPath,
        entry: Entry,
        data: bytes,
        before: os.stat_result | None,
        model: os.stat_result | None = None,
    ) -> Put:
        if before is not None and self.stays(path.root.path_of(entry.parts)):
            return Put(_overwrite(entry, data, before))
        if put := self._write_buffer(path, entry, data, before, model):
            return put
        return Put(_replace(entry, data, before or model))

    def _find_text(
        self, path: ResolvedPath, entry: Entry, before: os.stat_result | None
    ) -> tuple[str | None, set[str]]:
        """Return the text of a buffer that is not saved, and the versions of what the file holds."""
        if before is None:
            return None, set()
        if self.buffers is None or before.st_size > self.largest or file_kind(path.shown) != "text":
            return None, {version_of(before)}
        content = _read_content(entry)
        unsaved = find_unsaved(self.buffers, path.root.path_of(entry.parts), lambda: content)
        if unsaved is not None:
            return unsaved, {text_version(unsaved)}
        # What was written to a buffer may be saved only later.
        return None, {version_of(before), text_version(content.decode("utf-8", "replace"))}

    def _write_buffer(
        self,
        path: ResolvedPath,
        entry: Entry,
        data: bytes,
        before: os.stat_result | None,
        model: os.stat_result | None,
    ) -> Put | None:
        """Let the program that shows a file write it; return what it kept, `None` where it does not."""
        # It knows no modes, and nothing of the directories that were made on the way.
        if self.buffers is None or model or entry.made or file_kind(path.shown) != "text":
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        place = path.root.path_of(entry.parts)
        if is_binary(data) or not self.buffers.write(place, text):
            return None
        after = entry.stat_if_any()
        saved = None if after is None else _read_content(entry).decode("utf-8", "replace")
        versions = [each and version_of(each) for each in (before, after)]
        return find_kept(path.shown, text, self.buffers.read(place), saved, *versions)

    def delete(self, path: ResolvedPath, is_undeletable: Callable[[tuple[str, ...]], bool]) -> None:
        """Remove a file, a directory with all below it, or a link but not what it leads to."""
        with (
            translate_os_errors(f"'{path.shown}'", "deleting", path.hint),
            path.entry(follow=False) as entry,
        ):
            if not entry.name or is_undeletable(entry.parts):
                raise undeletable_root(path.shown)
            # What is checked must be what is removed, so no writer may come in between.
            with hold_lock(entry.above, path.root.path_of(entry.parts[:-1])):
                is_directory = stat.S_ISDIR(entry.stat().st_mode)
                if is_directory:
                    path.check_all_below(entry.parts)
                remove = entry.above.remove_tree if is_directory else entry.above.unlink
                remove(entry.name)

    def _check_size(self, size: int) -> None:
        if size > self.largest:
            raise BackendError(
                "too_large",
                f"The file has {format_size(size)}, over the limit of {format_size(self.largest)} for an "
                "edit. The limit is the backend's max_file_size_mb.",
            )

    @contextmanager
    def _open_to_change(
        self, path: ResolvedPath, doing: str, *, make_parents: bool = False
    ) -> Generator[tuple[Entry, os.stat_result | None]]:
        """Lock the directory of a file; yield the entry with what the system knows of it."""
        # A model that writes to the real path would otherwise get a second tree below the root.
        if path.hint and make_parents:
            raise BackendError("invalid_path", f"'{path.shown}' is not below the root.{path.hint}")
        with (
            translate_os_errors(f"File '{path.shown}'", doing, path.hint),
            path.entry(make_parents=make_parents) as entry,
            hold_lock(entry.above, path.root.path_of(entry.parts[:-1])),
        ):
            # Asked under the lock, or another writer could change it after the check.
            before = entry.stat_if_any()
            _check_replaceable(path, entry, before)
            self._sweep(entry)
            yield entry, before

    def _sweep(self, entry: Entry) -> None:
        directory, now = entry.parts[:-1], time.monotonic()
        if now < self._swept.get(directory, 0.0):
            return
        if len(self._swept) >= _DIRECTORIES_REMEMBERED:
            self._swept.clear()
        self._swept[directory] = now + FORGOTTEN_AFTER
        _remove_forgotten(entry.above)


def _stat_if_any(path: ResolvedPath) -> os.stat_result | None:
    with suppress(OSError), path.entry() as entry:
        return entry.stat_if_any()
    return None


def _check_replaceable(path: ResolvedPath, entry: Entry, before: os.stat_result | None) -> None:
    if not entry.name or (before and stat.S_ISDIR(before.st_mode)):
        raise BackendError("is_directory", f"Error writing file '{path.shown}': it is a directory.")
    if is_temporary(entry.name):
        raise BackendError("invalid_path", f"'{path.shown}' is a name kept for files that are being written.")
    if before is None:
        return
    check_regular(before, path.shown)
    # Replacing gives this name a file of its own; the other names would silently keep the old content.
    if before.st_nlink > 1:
        raise BackendError(
            "permission_denied",
            f"Error writing file '{path.shown}': it has {before.st_nlink} names (hard links), and a write "
            "would part them. Delete this name first, then write the file anew.",
        )
    # A rename asks for rights on the directory alone and would replace a read-only file.
    if not entry.above.may_write(entry.name):
        raise BackendError("permission_denied", f"Error writing file '{path.shown}': it is read-only.")


def _check_version(
    path: ResolvedPath, before: os.stat_result | None, expected: str | None, versions: Collection[str]
) -> None:
    if expected is None or expected in versions:
        return
    raise stale_version(f"File '{path.shown}'", "was deleted" if before is None else "changed")


def _read_content(entry: Entry) -> bytes:
    fd = entry.above.open(entry.name)
    try:
        return read_all(fd)
    finally:
        os.close(fd)


def _keep_line_ends(old: bytes, new: bytes, path: ResolvedPath) -> bytes:
    if file_kind(path.shown) != "text" or is_binary(old):
        return new
    # Latin-1 maps each byte to one character and back, so bytes that are not UTF-8 survive.
    return keep_line_endings(old.decode("latin-1"), new.decode("latin-1")).encode("latin-1")


def _read_text(entry: Entry, path: ResolvedPath) -> str:
    """Read text so that bytes which are not UTF-8 survive an edit elsewhere in the file."""
    data = _read_content(entry)
    if file_kind(path.shown) != "text" or is_binary(data):
        raise not_text()
    return data.decode("utf-8", "surrogateescape")


def _replace(entry: Entry, data: bytes, before: os.stat_result | None) -> str:
    """Make `data` the content of a file, keep its mode and owner, and return the new version.

    Raises:
        OSError: when another program puts a file of its own there each time.
    """
    for _ in range(_MOST_TRIES):
        if version := _try_to_replace(entry, data, before):
            return version
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _try_to_replace(entry: Entry, data: bytes, before: os.stat_result | None) -> str | None:
    """Replace a file once; `None` when what is there then is another one."""
    above, temporary = entry.above, temporary_name()
    # Others must not read what is new in a private file meanwhile or after a kill: its mode comes last.
    mode = 0o644 if before is None else 0o600
    unnamed = above.open_unnamed(mode)
    fd = above.open(temporary, _NEW, mode) if unnamed is None else unnamed
    with ExitStack() as opened:
        opened.callback(os.close, fd)
        try:
            written = _fill(fd, data, before)
            if unnamed is not None:
                # As late as this, for while it has a name, others could put a file in its place.
                above.link(fd, temporary)
            if sys.platform == "win32":
                # An open file cannot be renamed there. Elsewhere it keeps its number from being given anew.
                opened.close()
            # A rename in one directory is atomic: a reader sees the old content or the new, whole.
            above.rename(temporary, entry.name)
            there = entry.stat_if_any()
        except BaseException as error:
            with suppress(OSError):
                above.unlink(temporary)
            if isinstance(error, FileNotFoundError):
                return None
            raise
    if there is None or not os.path.samestat(there, written):
        return None
    # The new name is in the directory, which has to reach the disk as well.
    above.sync()
    return version_of(written)


def _overwrite(entry: Entry, data: bytes, before: os.stat_result) -> str:
    """Make `data` the content of a file that stays the same one."""
    fd = entry.above.open(entry.name, os.O_WRONLY)
    try:
        if not os.path.samestat(os.fstat(fd), before):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        os.ftruncate(fd, len(data))
        return version_of(_fill(fd, data, None))
    finally:
        os.close(fd)


def _fill(fd: int, data: bytes, before: os.stat_result | None) -> os.stat_result:
    write_all(fd, data)
    _copy_owner_and_mode(fd, before)
    # Two writes within one tick of the file system's clock would get the same version.
    if os.utime in os.supports_fd:
        now = time.time_ns()
        os.utime(fd, ns=(now, now))
    # Without this, a power cut after the rename could leave the new name with no content.
    os.fsync(fd)
    return os.fstat(fd)


def _append(entry: Entry, data: bytes) -> str:
    fd = entry.above.open(entry.name, os.O_WRONLY | os.O_APPEND)
    try:
        return append_whole(fd, data)
    finally:
        os.close(fd)


def _remove_forgotten(directory: Directory) -> None:
    """Remove what killed writers left in a directory long ago."""
    long_ago = time.time() - FORGOTTEN_AFTER
    with suppress(OSError), directory.scan() as entries:
        for name in [entry.name for entry in entries if is_temporary(entry.name)]:
            if directory.stat(name).st_mtime < long_ago:
                directory.unlink(name)


def _copy_owner_and_mode(fd: int, before: os.stat_result | None) -> None:
    if before is None or not hasattr(os, "fchmod"):
        return
    own = os.fstat(fd)
    # The owner comes before the mode: changing the owner clears bits of the mode.
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):
            # Only root may give files away; for others the writer becomes the owner.
            os.fchown(fd, before.st_uid, before.st_gid)
    mode = stat.S_IMODE(before.st_mode) & _KEPT_MODE
    if mode != stat.S_IMODE(os.fstat(fd).st_mode):
        with suppress(PermissionError):
            os.fchmod(fd, mode)
