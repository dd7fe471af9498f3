"""What is said to callers about their own code: once for each use, at their line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import FrameType
from typing import Any

_OURS = ("deepagents.", "pydantic.", "abc.")
_IMPORTING = "importlib._bootstrap"
_silent: ContextVar[bool] = ContextVar("deepagents_silent", default=False)


def warn_legacy(message: str, *, removal: str = "1.0") -> None:
    """Say that an older form was used."""
    if not _silent.get():
        warn_caller(f"{message} The old form goes away in {removal}.", DeprecationWarning)


def warn_caller(message: str, category: type[Warning] = UserWarning, *, beyond: tuple[str, ...] = ()) -> None:
    """Warn at the first line outside this package, and `beyond` these, that led here."""
    depth = 0
    frame: FrameType | None = inspect.currentframe()
    passed = (*_OURS, _IMPORTING, *beyond)
    while frame is not None and (name := f"{frame.f_globals.get('__name__', '')}.").startswith(passed):
        frame = frame.f_back
        # `warnings` itself does not count the frames of the import system.
        depth += not name.startswith(_IMPORTING)
    warnings.warn(message, category, stacklevel=depth + 1)


def is_import_looking() -> bool:
    """Tell whether the import system is who asks: it looks whether a package has a name, then takes it."""
    frame = inspect.currentframe()
    asker = frame and frame.f_back and frame.f_back.f_back
    return asker is not None and asker.f_globals.get("__name__") == _IMPORTING


@contextmanager
def already_warned() -> Generator[None]:
    """Keep silent about older forms that are used again only because of one that was warned about."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def legacy(module: str) -> Callable[[str], Any]:
    """Make a module's `__getattr__`, which imports on demand and warns at the line that asked."""

    def load(name: str) -> Any:
        # The table knows modules of every floor, so it is looked up by name and only when it is needed.
        rows = import_module("deepagents._compat").LEGACY_NAMES[module]
        if name not in rows:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, today = rows[name].partition(":")
        if not is_import_looking():
            public = "" if "._" in home else f": today it is {today} of {home}"
            warn_legacy(f"{name} is deprecated{public}.")
        return getattr(import_module(home), today)

    return load
