"""Run the entry points of installed packages: each once, before a provider or a profile is looked up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import EntryPoint, distribution, distributions
from threading import RLock, get_ident
from typing import Final, cast

from deepagents._deprecation import warn_caller

_GROUPS: Final = (
    "deepagents.model_providers",
    "deepagents.provider_profiles",
    "deepagents.harness_profiles",
)
_NAMESPACE: Final = "deepagents."
_FILE: Final = "entry_points.txt"
_PATIENCE: Final = 10.0
"""Seconds that a thread waits for plugins that another one runs."""

_logger = logging.getLogger(__name__)


class _Plugins:
    """How far the plugins of this process are."""

    def __init__(self) -> None:
        self.turn = RLock()
        self.runner: int | None = None
        self.under_way: EntryPoint | None = None
        self.is_late = False
        self.done = False


_PLUGINS: Final = _Plugins()


def load_plugins(patience: float = _PATIENCE) -> None:
    """Run the entry points of all groups, once in a process.

    Other threads wait until all have run, but not for ever: a plugin may wait for one of them. Within a group
    the order is that of the names of distributions, then of entry points, so a later name wins where two
    register the same key. A plugin that fails is skipped with a warning.
    """
    if _PLUGINS.done or _PLUGINS.is_late or is_plugin_running_here():
        return
    if not _PLUGINS.turn.acquire(timeout=patience):
        _PLUGINS.is_late = True
        _warn_of_waiting(_PLUGINS.under_way, patience)
        return
    try:
        if not _PLUGINS.done:
            _run_all()
    finally:
        _PLUGINS.runner, _PLUGINS.is_late = None, False
        _PLUGINS.turn.release()


def is_plugin_running_here() -> bool:
    """Return whether a plugin is what asks: this thread runs them."""
    return _PLUGINS.runner == get_ident()


def _run_all() -> None:
    _PLUGINS.runner = get_ident()
    for point in _find_all():
        _PLUGINS.under_way = point
        _run(point)
    _PLUGINS.done = True


def _warn_of_waiting(late: EntryPoint | None, patience: float) -> None:
    if late is not None:
        warn_caller(
            f"{_describe(late)} has not come back for {patience:g} s, and this thread goes on without the "
            "profiles of plugins. A plugin must not wait for a thread that makes agents or asks for profiles."
        )


def _find_all() -> list[EntryPoint]:
    try:
        # Reading the entry points of every installed package takes four times as long as looking for ours.
        names = {each.name for each in distributions() if _NAMESPACE in (each.read_text(_FILE) or "")}
        # By name again: of a package that is installed twice, the first on the path counts.
        found = [(name, point) for name in names for point in distribution(name).entry_points]
        ours = [(_GROUPS.index(point.group), name, point) for name, point in found if point.group in _GROUPS]
        return [point for _, _, point in sorted(ours, key=lambda each: (*each[:2], each[2].name))]
    except Exception as error:
        _logger.exception("Failed to enumerate entry points of %s", ", ".join(_GROUPS))
        warn_caller(f"Failed to enumerate the entry points of {_GROUPS!r}, so none is used: {error!r}")
        return []


def _run(point: EntryPoint) -> None:
    doing = "failed to load entry point:"
    try:
        register: object = point.load()
        if not callable(register):
            raise TypeError(f"did not resolve to a callable, but to {register!r}")
        doing = f"registration callable {point.value!r} raised"
        cast("Callable[[], object]", register)()
    # A broken plugin must not stop a program that may not need it.
    except Exception as error:
        _logger.exception("%s is skipped", _describe(point))
        warn_caller(f"{_describe(point)} is skipped: {doing} {error!r}. Mend or uninstall it.")


def _describe(point: EntryPoint) -> str:
    distribution_name = point.dist.name if point.dist else ""
    return f"Plugin {point.name!r} of distribution {distribution_name!r} ({point.group})"
