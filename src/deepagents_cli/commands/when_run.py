"""Load what a command needs when it runs, so that `--help` answers at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any


class Module:
    """Stands for a module that is imported when the first of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)

    def load(self) -> None:
        """Import it now."""
        import_module(self._name)


def import_when_run(*names: str) -> Sequence[Any]:
    """Return what stands for these modules until `load_all` imports them."""
    return [Module(name) for name in names]


def load_all(names: Mapping[str, Any]) -> None:
    """Import the modules among the names of a command."""
    for each in names.values():
        if isinstance(each, Module):
            each.load()
