"""Find programs that are run outside of any sandbox: never one that an agent may have written."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from weakref import finalize


def find_program(name: str, changeable: Sequence[Path] = (), further: Sequence[Path] = ()) -> str | None:
    """Find a program on the search path, then in `further` directories; in none that is `changeable`.

    Relative entries of the search path are passed over: what they mean follows from where one stands. What a
    link leads to must be out of reach as well.
    """
    # A loop of links, which somebody may have made since, fails in `Path.resolve`.
    kept_out = [os.path.realpath(each) for each in changeable]
    for directory in (*map(Path, os.get_exec_path()), *further):
        found = shutil.which(name, path=str(directory)) if directory.is_absolute() else None
        if found and not any(
            Path(each).is_relative_to(top)
            for top in kept_out
            for each in (os.path.normpath(found), os.path.realpath(found))
        ):
            return found
    return None


def find_ripgrep(changeable: Sequence[Path] = ()) -> str | None:
    """Find ripgrep, also next to this Python, where its wheel puts it; in no directory of any backend."""
    return find_program("rg", [*changeable, *list_changeable()], [Path(sys.executable).parent])


def list_changeable() -> Sequence[Path]:
    """List the directories in which some backend of this process can change files."""
    return [each for one in [*_of_backends().values()] for each in one]


def note_changeable(backend: object, directories: Sequence[Path]) -> None:
    """Note what can be changed by a backend, as long as it lives: one agent may have several."""
    key = id(backend)
    if key not in _of_backends():
        finalize(backend, _of_backends().pop, key, None)
    _of_backends()[key] = directories


@cache
def _of_backends() -> dict[int, Sequence[Path]]:
    return {}
