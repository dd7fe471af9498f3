"""Entry points of installed packages: each runs once, before a provider or a profile is looked up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from threading import Condition, Lock, get_ident
from typing import Final, cast

from deepagents._deprecation import warn_caller

PROVIDER_GROUP: Final = "deepagents.provider_profiles"
HARNESS_GROUP: Final = "deepagents.harness_profiles"
MODEL_GROUP: Final = "deepagents.model_providers"

_PATIENCE: Final = 10.0
"""Seconds that a thread waits for plugins that another one runs."""

_logger = logging.getLogger(__name__)
_opening: Final = Lock()


@dataclass
class _Progress:
    turn: Condition = field(default_factory=Condition)
    runner: int | None = None
    under_way: EntryPoint | None = None
    waited_enough: bool = False
    done: bool = False


def load_plugins(patience: float = _PATIENCE) -> None:
    """Run the entry points of all groups, once in a process.

    Other threads wait until all have run, but not for ever: a plugin may wait for one of them. Within a group
    the order is that of the names of distributions, then of entry points, so a later name wins where two
    register the same key. A plugin that fails is skipped with a warning.
    """
    progress = _progress()
    if progress.done or progress.waited_enough or is_plugin_running_here():
        return
    if not _took_the_turn(progress, patience):
        return
    try:
        for point in _in_order(MODEL_GROUP, PROVIDER_GROUP, HARNESS_GROUP):
            progress.under_way = point
            _run(point)
        progress.done = True
    finally:
        with progress.turn:
            progress.runner = progress.under_way = None
            progress.waited_enough = False
            progress.turn.notify_all()


def is_plugin_running_here() -> bool:
    """Return whether a plugin is what asks: this thread runs them."""
    return _progress().runner == get_ident()


def have_plugins_run() -> bool:
    """Return whether all plugins of this process have run."""
    return _progress().done


def _progress() -> _Progress:
    with _opening:
        return _the_progress()


@cache
def _the_progress() -> _Progress:
    return _Progress()


def _took_the_turn(progress: _Progress, patience: float) -> bool:
    with progress.turn:
        if progress.turn.wait_for(lambda: progress.runner is None, patience):
            progress.runner = None if progress.done else get_ident()
            return not progress.done
        late, progress.waited_enough = progress.under_way, True
    if late is not None:
        warn_caller(
            f"{_describe(late)} has not come back for {patience:g} s, and this thread goes on without the "
            "profiles of plugins. A plugin must not wait for a thread that makes agents or asks for profiles."
        )
    return False


def _in_order(*groups: str) -> list[EntryPoint]:
    try:
        installed = entry_points()
        return [each for group in groups for each in sorted(installed.select(group=group), key=_rank)]
    except Exception as error:
        _logger.exception("Failed to enumerate entry points of %s", ", ".join(groups))
        warn_caller(f"Failed to enumerate the entry points of {groups!r}, so none is used: {error!r}")
        return []


def _rank(point: EntryPoint) -> tuple[str, str]:
    return _distribution(point), point.name


def _run(point: EntryPoint) -> None:
    try:
        register: object = point.load()
    except Exception as error:
        # A broken plugin must not stop a program that may not need it.
        _logger.exception("failed to load entry point %s", point)
        _warn_of_skipping(point, f"failed to load entry point: {error!r}")
        return
    if not callable(register):
        _logger.error("entry point %s did not resolve to a callable", point)
        _warn_of_skipping(point, f"did not resolve to a callable, but to {register!r}")
        return
    try:
        cast("Callable[[], object]", register)()
    except Exception as error:
        _logger.exception("registration callable of %s raised", point)
        _warn_of_skipping(point, f"registration callable {point.value!r} raised {error!r}")


def _warn_of_skipping(point: EntryPoint, why: str) -> None:
    warn_caller(f"{_describe(point)} is skipped: {why}. Mend or uninstall it.")


def _describe(point: EntryPoint) -> str:
    return f"Plugin {point.name!r} of distribution {_distribution(point)!r} ({point.group})"


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else ""
