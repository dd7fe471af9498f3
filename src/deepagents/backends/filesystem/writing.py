"""Write, edit and delete files; checking what is there and changing it is one step."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from deepagents._text import format_size, keep_line_endings, replace_exact
from deepagents.backends._bytes import is_binary, is_temporary, version_of
from deepagents.backends.filedata import encode_text, file_kind, validate_addition, validate_bytes
from deepagents.backends.filesystem import atomic
from deepagents.backends.filesystem.confined_dir import Entry, translate_os_errors
from deepagents.backends.filesystem.pages import read_all
from deepagents.backends.filesystem.paths import ResolvedPath
from deepagents.backends.filesystem.reading import check_regular
from deepagents.errors import BackendError

_DIRECTORIES_REMEMBERED = 1024


@dataclass(slots=True)
class Writer:
    """Writes below a root; files of more than `largest` bytes are not edited."""

    largest: int
    _swept: dict[tuple[str, ...], float] = field(default_factory=dict[tuple[str, ...], float])

    def write(self, path: ResolvedPath, content: str, expected_version: str | None) -> str:
        """Make text the content of a file, with the line ends it had, and return the new version."""
        data = encode_text(content)
        try:
            with self._open_to_change(path, "writing", make_parents=expected_version is None) as (
                entry,
                before,
            ):
                _check_version(path, before, expected_version)
                if before and b"\n" in data and before.st_size <= self.largest:
                    data = _keep_line_ends(_read_content(entry), data, path)
                return atomic.replace(entry, data, before)
        except BackendError as error:
            if expected_version is None or error.code != "file_not_found":
                raise
            # With an expected version no directory is made, so a missing one says that the file is gone.
            raise _stale(path, "was deleted") from error

    def write_bytes(self, path: ResolvedPath, content: bytes) -> None:
        """Make bytes the content of a file."""
        data = validate_bytes(path.shown, content)
        with self._open_to_change(path, "writing", make_parents=True) as (entry, before):
            atomic.replace(entry, data, before)

    def append(self, path: ResolvedPath, content: str | bytes) -> str:
        """Add to the end of a file, all of it or nothing, and return the version."""
        given = validate_addition(path.shown, content)
        data = given.encode() if isinstance(given, str) else given
        with self._open_to_change(path, "writing", make_parents=True) as (entry, before):
            return atomic.replace(entry, data, None) if before is None else atomic.append(entry, data)

    def edit(
        self, path: ResolvedPath, old: str, new: str, replace_all: bool, expected_version: str | None
    ) -> tuple[int, str]:
        """Replace exact text; return the number of places and the new version."""
        encode_text(old)
        encode_text(new)
        with self._open_to_change(path, "editing") as (entry, before):
            if before is None:
                raise FileNotFoundError
            _check_version(path, before, expected_version)
            self._check_size(before.st_size)
            done = replace_exact(_read_text(entry, path), old, new, replace_all)
            # Gives back byte for byte what was not UTF-8 when the file was read.
            data = done.content.encode("utf-8", "surrogateescape")
            return done.count, atomic.replace(entry, data, before)

    def delete(self, path: ResolvedPath, is_undeletable: Callable[[tuple[str, ...]], bool]) -> None:
        """Remove a file, a directory with all below it, or a link but not what it leads to."""
        with (
            translate_os_errors(f"'{path.shown}'", "deleting", path.hint),
            path.entry(follow=False) as entry,
        ):
            if not entry.name or is_undeletable(entry.parts):
                raise BackendError(
                    "invalid_path", f"Error deleting '{path.shown}': the root cannot be deleted."
                )
            # What is checked must be what is removed, so no writer may come in between.
            with atomic.hold_lock(entry.above, path.root.path_of(entry.parts[:-1])):
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
            atomic.hold_lock(entry.above, path.root.path_of(entry.parts[:-1])),
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
        self._swept[directory] = now + atomic.FORGOTTEN_AFTER
        atomic.sweep(entry.above)


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


def _check_version(path: ResolvedPath, before: os.stat_result | None, expected: str | None) -> None:
    if expected is None or (before is not None and version_of(before) == expected):
        return
    raise _stale(path, "was deleted" if before is None else "changed")


def _stale(path: ResolvedPath, happened: str) -> BackendError:
    return BackendError(
        "stale_version",
        f"File '{path.shown}' {happened} since it was read. Read it again, then repeat the change.",
    )


def _read_content(entry: Entry) -> bytes:
    fd = entry.above.open(entry.name)
    try:
        return read_all(fd)
    finally:
        os.close(fd)


def _keep_line_ends(old: bytes, new: bytes, path: ResolvedPath) -> bytes:
    if file_kind(path.shown) != "text" or is_binary(old):
        return new
    # Latin-1 maps each byte to one character and back, so bytes that are no UTF-8 survive.
    return keep_line_endings(old.decode("latin-1"), new.decode("latin-1")).encode("latin-1")


def _read_text(entry: Entry, path: ResolvedPath) -> str:
    """Read text so that bytes which are not UTF-8 survive an edit elsewhere in the file."""
    data = _read_content(entry)
    if file_kind(path.shown) != "text" or is_binary(data):
        raise BackendError("invalid_encoding", "Cannot edit binary files. Write the file whole instead.")
    return data.decode("utf-8", "surrogateescape")
