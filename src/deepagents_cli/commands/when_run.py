"""Load what a command needs when it runs, so that `--help` answers at once.

What `lazy import` of Python 3.15 (PEP 810) will do, for a block. `importlib.util.LazyLoader` cannot: to
import a module of a package it loads the package, and some take a second. The block holds imports alone, and
commands are imported before any thread begins, so no other code meets the function that stands in meanwhile.
"""

from __future__ import annotations

import builtins
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class _Module:
    """Stands for a module, which is imported when one of its names is used first."""

    def __init__(self, name: str, is_late: bool) -> None:
        self._name = name
        self.is_late = is_late

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)

    def load(self) -> None:
        import_module(self._name)


class _Package:
    def __init__(self, name: str, is_late: bool) -> None:
        self._name = name
        self._is_late = is_late

    def __getattr__(self, name: str) -> _Module:
        return _Module(f"{self._name}.{name}", self._is_late)


@contextmanager
def imported_when_run(*, late: bool = False) -> Generator[None]:
    """Put off the imports of whole modules in this block until `load_all`, or if `late`, until their use."""

    def put_off(name: str, names: Any, local_names: Any, parts: Any, level: int) -> Any:
        return _Package(name, late) if parts else _Module(name, late)

    present = builtins.__import__
    builtins.__import__ = put_off
    try:
        yield
    finally:
        builtins.__import__ = present


def load_all(names: Mapping[str, Any]) -> None:
    """Import the modules that stand among the names of a command, but for late ones."""
    for each in names.values():
        if isinstance(each, _Module) and not each.is_late:
            each.load()
