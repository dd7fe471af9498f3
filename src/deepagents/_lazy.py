"""Load names of a package on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Make a module's `__getattr__` from a table of modules, each with its names, and list all in its `dir`.

    A module that begins with a dot is one of the package, and is found there as if it had been imported.
    """
    known = vars(sys.modules[package])
    homes = {
        name: f"{package}{home}" if home.startswith(".") else home
        for home, names in modules.items()
        for name in names.split()
    }

    def load(name: str) -> Any:
        if f".{name}" in modules:
            return import_whole(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_whole(homes[name]), name)

    known["__dir__"] = lambda: {*known, *homes}
    return load


def import_whole(module: str) -> Any:
    """Import a module.

    Raises:
        ImportError: also for an `AttributeError` in it, by which a `__getattr__` would only say that the name
            is not there. Packages whose versions do not fit each other raise it.
    """
    try:
        return import_module(module)
    except AttributeError as error:
        raise ImportError(f"{module} cannot be imported: {error}", name=module) from error
