"""Put paths into the states that a plan names: stage what is needed, then rename.

Nothing is reached through a link, and what is no longer as the plan found it stays.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from deepagents.backends._bytes import temporary_name
from deepagents.backends._directory import open_directory, write_whole
from deepagents.undo.plans import Item
from deepagents.undo.states import (
    LINK,
    NOTHING_THERE,
    State,
    is_directory,
    key_of,
    mode_of,
    reaching,
    read_path,
)
from deepagents.undo.store import Store

Work: TypeAlias = Callable[[Any, str, Item, int], None]
"""Takes the open directory of an item, its name in there, the item and its number."""
_NOT_HERE: Final = (errno.EACCES, errno.EROFS, errno.ENOENT)


class Restorer:
    """Carries out the items of one plan, with the contents of a store.

    `folders` are hidden directories, one below each root, in which contents wait until all are there.
    """

    def __init__(self, store: Store, items: Iterable[Item], folders: Sequence[str], most: int) -> None:
        self._store = store
        self._items = [each for each in items if each.is_applied]
        self._folders = folders
        self._most = most

    def stage(self) -> None:
        """Write the contents into the hidden directories.

        Raises:
            OSError: where that is not possible; nothing has changed then.
        """
        try:
            for folder in self._folders:
                _make_folder(folder)
            for number, item in enumerate(self._items):
                self._stage_one(number, item)
        except OSError:
            self.clear()
            raise

    def _stage_one(self, number: int, item: Item) -> None:
        folder = self._folder_of(item.path)
        if folder and item.target and not is_directory(item.target) and Path(folder).exists():
            with open_directory(Path(folder)) as directory:
                self._make(directory, str(number), item.target)

    def _make(self, directory: Any, name: str, state: State) -> None:
        if state[:1] == LINK:
            directory.symlink(os.fsdecode(key_of(state)), name)
            return
        content = self._store.content(state)
        if content is None:
            raise OSError(errno.ENODATA, "its content is not kept any more")
        write_whole(directory, name, content, mode_of(state))

    def clear(self) -> None:
        """Remove the hidden directories."""
        for folder in self._folders:
            with suppress(OSError), open_directory(Path(folder).parent) as above:
                above.remove_tree(Path(folder).name)

    def apply(self) -> list[str]:
        """Carry the items out, and return the paths where that failed; what is done stays so."""
        failed: list[str] = []
        numbered = sorted(enumerate(self._items), key=lambda each: each[1].path.count("/"))
        # From the bottom, so that directories are empty; from the top, so that they are there; and modes
        # last, for a directory that must not be written to holds what was put into it.
        for meant, work in (
            ([each for each in reversed(numbered) if _goes_away(each[1])], self._remove),
            ([each for each in numbered if each[1].target is not None], self._put),
            ([each for each in reversed(numbered) if is_directory(each[1].target)], self._set_mode),
        ):
            for number, item in meant:
                if item.path not in failed and not self._try(item, work, number):
                    failed.append(item.path)
        self.clear()
        return failed

    def _try(self, item: Item, work: Work, number: int) -> bool:
        """Do something about one item, with what it needs of its directory; return whether that went well."""
        try:
            try:
                _at(item, work, number)
            except FileNotFoundError:
                if item.target is None:
                    raise
                Path(item.path).parent.mkdir(parents=True, exist_ok=True)
                _at(item, work, number)
            except PermissionError:
                # A directory of one's own that must not be written to, perhaps since the agent said so.
                with _writable(str(Path(item.path).parent)):
                    _at(item, work, number)
        except OSError as error:
            # After a kill, what it lay in may be another thing already.
            return item.target is None and error.errno in NOTHING_THERE
        return True

    def _held(self, item: Item) -> State | None:
        with reaching() as reach:
            found = read_path(reach, item.path, self._most)
        return found.state if found else None

    def _remove(self, directory: Any, name: str, item: Item, number: int) -> None:
        held = self._held(item)
        if held is None or held == item.target:
            return
        if held != item.now:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        (directory.rmdir if is_directory(held) else directory.unlink)(name)

    def _put(self, directory: Any, name: str, item: Item, number: int) -> None:
        held, target = self._held(item), item.target
        if held == target or target is None:
            return
        if is_directory(held) and is_directory(target) and not is_directory(item.now):
            # Made before a kill; the mode comes last.
            return
        if held != (None if _goes_away(item) else item.now):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        if is_directory(target):
            if held is None:
                directory.mkdir(name)
            return
        if not self._rename_staged(directory, name, item, number):
            temporary = temporary_name()
            self._make(directory, temporary, target)
            directory.rename(temporary, name)

    def _rename_staged(self, directory: Any, name: str, item: Item, number: int) -> bool:
        """Put the staged content in place; `False` where there is none, or on another file system."""
        folder = self._folder_of(item.path)
        if folder is None:
            return False
        try:
            directory.take(Path(folder) / str(number), name)
        except OSError as error:
            if error.errno in (errno.EXDEV, *_NOT_HERE):
                return False
            raise
        return True

    def _set_mode(self, directory: Any, name: str, item: Item, number: int) -> None:
        mode = mode_of(item.target or b"")
        if stat.S_IMODE(directory.stat(name).st_mode) != mode:
            directory.chmod(name, mode)

    def _folder_of(self, path: str) -> str | None:
        """Return the hidden directory of the innermost root that a path lies below."""
        above = [each for each in self._folders if path.startswith(each.rpartition("/")[0] + "/")]
        return max(above, key=len, default=None)


def _make_folder(folder: str) -> None:
    """Make a hidden directory; where that is not allowed, files are made where they come to lie."""
    try:
        Path(folder).mkdir(mode=0o700)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise


def _at(item: Item, work: Work, number: int) -> None:
    with reaching() as reach:
        work(*reach.entry(item.path[1:]), item, number)


@contextmanager
def _writable(path: str) -> Generator[None]:
    """Let a directory be written to for a moment."""
    with reaching() as reach:
        above, name = reach.entry(path[1:])
        mode = stat.S_IMODE(above.stat(name).st_mode)
        above.chmod(name, mode | stat.S_IRWXU)
        try:
            yield
        finally:
            above.chmod(name, mode)


def _goes_away(item: Item) -> bool:
    """Return whether what is there has to be removed first: a rename replaces files and links alone."""
    return item.now is not None and (
        item.target is None or is_directory(item.now) != is_directory(item.target)
    )
