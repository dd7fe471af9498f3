"""Warn about a caller's own code: once for each use, at the caller's line."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from operator import attrgetter
from types import FrameType
from typing import Any

from deepagents._lazy import import_whole
from deepagents.errors import DeepAgentsWarning

# Our own modules, and those that may stand between them and the line of the caller.
_OURS = ("deepagents.", "pydantic.", "abc.", "functools.")
_IMPORTING = "importlib._bootstrap"
# Not a global: agents are built in several threads at once.
_silent: ContextVar[bool] = ContextVar("deepagents_silent", default=False)


def warn_legacy(message: str) -> None:
    """Warn that an older form was used, in LangChain's category, so that its filters hold here too."""
    if not _silent.get():
        category = _langchain_category("LangChainDeprecationWarning")
        warn_caller(f"{message} The old form goes away in 1.0.", category)


def warn_beta(feature: str) -> None:
    """Warn that a feature may still change, in the words that LangChain has for it."""
    text = f"The feature `{feature}` is in beta. It is actively being worked on, so the API may change."
    warn_caller(text, _langchain_category("LangChainBetaWarning"))


def _langchain_category(name: str) -> type[Warning]:
    # LangChain has no public path to its categories. Imported late: errors and protocols load without it.
    return getattr(import_module("langchain_core._api"), name)


def warn_caller(
    message: str, category: type[Warning] = DeepAgentsWarning, *, beyond: tuple[str, ...] = ()
) -> None:
    """Warn at the first line outside this package, and outside the modules `beyond`, that led here."""
    depth = 0
    frame: FrameType | None = inspect.currentframe()
    passed = (*_OURS, _IMPORTING, *beyond)
    while frame is not None and (name := f"{frame.f_globals.get('__name__', '')}.").startswith(passed):
        frame = frame.f_back
        # `warnings` itself does not count the frames of the import system.
        depth += not name.startswith(_IMPORTING)
    warnings.warn(message, category, stacklevel=depth + 1)


def warn_unknown_keys(owner: str, unknown: Iterable[str], known: Iterable[str]) -> None:
    """Warn of each key of a spec that means nothing, with the known one that is nearest."""
    for key in unknown:
        warn_caller(f"{owner}: unknown key {key!r} is ignored{did_you_mean(key, known)}")


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return the question for the nearest known name, empty where none is near."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


@contextmanager
def already_warned() -> Generator[None]:
    """Suppress warnings about older forms that are used again because of one that was warned about."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def legacy(module: str, other: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module with older names: some warn, others are silent.

    `other` loads those that are not older.
    """

    def load(name: str) -> Any:
        known = load_legacy()
        moved = known.names_on(module)
        if name == "__all__" and moved:
            return [each for each in moved if not each.startswith("_")]
        if name in moved:
            home, today = moved[name]
        elif name in known.LEGACY_NAMES.get(module, ()):
            home, _, today = known.LEGACY_NAMES[module][name].partition(":")
            if not _is_import_system_asking():
                public = "" if "._" in home else f": today it is {today} of {home}"
                warn_legacy(f"{name} is deprecated{public}.")
        elif other:
            return other(name)
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return attrgetter(today)(import_whole(home))

    return load


def legacy_method(name: str) -> Callable[..., Any]:
    """Make the method of a backend that goes by another name today."""

    def method(backend: Any, *args: Any, **options: Any) -> Any:
        return load_legacy("backends").call_older(backend, name, *args, **options)

    method.__name__ = name
    return method


def load_legacy(part: str = "") -> Any:
    """Import what knows older names.

    That is only done when one is asked for: it knows modules of every layer.
    """
    return import_module(f"deepagents._compat{part and f'.{part}'}")


def _is_import_system_asking() -> bool:
    """Return whether the import system calls: it looks whether a package has a name before it takes it."""
    frame = inspect.currentframe()
    asker = frame and frame.f_back and frame.f_back.f_back
    return asker is not None and asker.f_globals.get("__name__") == _IMPORTING
