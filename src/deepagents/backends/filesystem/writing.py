"""Write, edit and delete files; check and replace are one step."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from deepagents._text import format_size, keep_line_endings, replace_exact
from deepagents.backends._directory import is_temporary
from deepagents.backends.filedata import checked_addition, checked_bytes, encoded
from deepagents.backends.filesystem.atomic import FORGOTTEN_AFTER, extend, replace, sweep, version_of
from deepagents.backends.filesystem.faults import told
from deepagents.backends.filesystem.locks import locked
from deepagents.backends.filesystem.pages import is_binary, read_all
from deepagents.backends.filesystem.reading import check_regular
from deepagents.backends.filesystem.targets import Target
from deepagents.backends.filesystem.tree import Place
from deepagents.backends.kinds import file_kind
from deepagents.errors import BackendError

_DIRECTORIES_REMEMBERED = 1024


@dataclass(slots=True)
class Writer:
    """Writes below a root; files of more than `largest` bytes are not edited."""

    largest: int
    _swept: dict[tuple[str, ...], float] = field(default_factory=dict[tuple[str, ...], float])

    def write(self, target: Target, content: str, expected_version: str | None) -> str:
        """Put text in a place, with the line ends of what stood there, and return its version."""
        data = encoded(content)
        try:
            with self._to_change(target, "writing", make_parents=expected_version is None) as (place, before):
                _check_version(target, before, expected_version)
                if before and b"\n" in data and before.st_size <= self.largest:
                    data = _with_line_ends_of(_content(place), data, target)
                return replace(place, data, before)
        except BackendError as error:
            if expected_version is None or error.code != "file_not_found":
                raise
            raise _stale(target, "was deleted") from error

    def write_bytes(self, target: Target, content: bytes) -> None:
        """Put bytes in a place as they are."""
        data = checked_bytes(target.shown, content)
        with self._to_change(target, "writing", make_parents=True) as (place, before):
            replace(place, data, before)

    def append(self, target: Target, content: str | bytes) -> str:
        """Add to the end of a file, all of it or nothing, and return the version."""
        given = checked_addition(target.shown, content)
        data = given.encode() if isinstance(given, str) else given
        with self._to_change(target, "writing", make_parents=True) as (place, before):
            return replace(place, data, None) if before is None else extend(place, data)

    def edit(
        self, target: Target, old: str, new: str, replace_all: bool, expected_version: str | None
    ) -> tuple[int, str]:
        """Replace exact text; return how often, and the new version."""
        encoded(old)
        encoded(new)
        with self._to_change(target, "editing") as (place, before):
            if before is None:
                raise FileNotFoundError
            _check_version(target, before, expected_version)
            self._check_size(before.st_size)
            done = replace_exact(_text_of(place, target), old, new, replace_all)
            data = done.content.encode("utf-8", "surrogateescape")
            return done.count, replace(place, data, before)

    def delete(self, target: Target, is_guarded: Callable[[tuple[str, ...]], bool]) -> None:
        """Remove a file, a directory with all below it, or a link but not what it leads to."""
        with (
            told(f"'{target.shown}'", "deleting", target.hint),
            target.place(follow=False) as place,
        ):
            if not place.name or is_guarded(place.parts):
                raise BackendError(
                    "invalid_path", f"Error deleting '{target.shown}': the root cannot be deleted."
                )
            with locked(place.above, target.tree.root.joinpath(*place.parts[:-1])):
                is_directory = stat.S_ISDIR(place.stat().st_mode)
                if is_directory:
                    target.check_below(place)
                remove = place.above.remove_tree if is_directory else place.above.unlink
                remove(place.name)

    def _check_size(self, size: int) -> None:
        if size > self.largest:
            raise BackendError(
                "too_large",
                f"The file has {format_size(size)}, over the limit of {format_size(self.largest)} for an "
                "edit. The limit is the backend's max_file_size_mb.",
            )

    @contextmanager
    def _to_change(
        self, target: Target, doing: str, *, make_parents: bool = False
    ) -> Generator[tuple[Place, os.stat_result | None]]:
        """Lock a place and look what stands there."""
        if target.hint and make_parents:
            raise BackendError("invalid_path", f"'{target.shown}' is not below the root.{target.hint}")
        tree = target.tree
        with (
            told(f"File '{target.shown}'", doing, target.hint),
            target.place(make_parents=make_parents) as place,
            locked(place.above, tree.root.joinpath(*place.parts[:-1])),
        ):
            before = place.stat_if_any()
            _check_replaceable(target, place, before)
            self._sweep(place)
            yield place, before

    def _sweep(self, place: Place) -> None:
        directory, now = place.parts[:-1], time.monotonic()
        if now < self._swept.get(directory, 0.0):
            return
        if len(self._swept) >= _DIRECTORIES_REMEMBERED:
            self._swept.clear()
        self._swept[directory] = now + FORGOTTEN_AFTER
        sweep(place.above)


def _check_replaceable(target: Target, place: Place, before: os.stat_result | None) -> None:
    if not place.name or (before and stat.S_ISDIR(before.st_mode)):
        raise BackendError("is_directory", f"Error writing file '{target.shown}': it is a directory.")
    if is_temporary(place.name):
        raise BackendError(
            "invalid_path", f"'{target.shown}' is a name kept for files that are being written."
        )
    if before is None:
        return
    check_regular(before, target.shown)
    if before.st_nlink > 1:
        raise BackendError(
            "permission_denied",
            f"Error writing file '{target.shown}': it has {before.st_nlink} names (hard links), and a write "
            "would part them. Delete this name first, then write the file anew.",
        )
    if not place.above.may_write(place.name):
        raise BackendError("permission_denied", f"Error writing file '{target.shown}': it is read-only.")


def _check_version(target: Target, before: os.stat_result | None, expected: str | None) -> None:
    if expected is None or (before is not None and version_of(before) == expected):
        return
    raise _stale(target, "was deleted" if before is None else "changed")


def _stale(target: Target, happened: str) -> BackendError:
    return BackendError(
        "stale_version",
        f"File '{target.shown}' {happened} since it was read. Read it again, then repeat the change.",
    )


def _content(place: Place) -> bytes:
    fd = place.above.open(place.name)
    try:
        return read_all(fd)
    finally:
        os.close(fd)


def _with_line_ends_of(old: bytes, new: bytes, target: Target) -> bytes:
    if file_kind(target.shown) != "text" or is_binary(old):
        return new
    return keep_line_endings(old.decode("latin-1"), new.decode("latin-1")).encode("latin-1")


def _text_of(place: Place, target: Target) -> str:
    """Read text so that bytes which are not UTF-8 survive an edit elsewhere in the file."""
    data = _content(place)
    if file_kind(target.shown) != "text" or is_binary(data):
        raise BackendError("invalid_encoding", "Cannot edit binary files. Write the file whole instead.")
    return data.decode("utf-8", "surrogateescape")
