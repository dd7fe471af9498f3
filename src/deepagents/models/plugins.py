"""Profiles that installed packages bring: entry points that run once, before a profile is looked up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Final, cast

from deepagents._deprecation import warn_caller

PROVIDER_GROUP: Final = "deepagents.provider_profiles"
HARNESS_GROUP: Final = "deepagents.harness_profiles"

_logger = logging.getLogger(__name__)
_turn: Final = RLock()


@dataclass
class _Progress:
    begun: bool = False


@cache
def _progress() -> _Progress:
    return _Progress()


def load_plugins() -> None:
    """Run the entry points of both groups, once in a process.

    Other threads wait until all have run; a plugin that registers profiles passes. Within a group the order
    is that of the names of distributions, then of entry points, so a later name wins where two register the
    same key. A plugin that fails is skipped with a warning.
    """
    with _turn:
        progress = _progress()
        if progress.begun:
            return
        progress.begun = True
        try:
            for point in _in_order(PROVIDER_GROUP, HARNESS_GROUP):
                _run(point)
        except BaseException:
            progress.begun = False
            raise


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
        _logger.exception("failed to load entry point %s", point)
        _skipped(point, f"failed to load entry point: {error!r}")
        return
    if not callable(register):
        _logger.error("entry point %s did not resolve to a callable", point)
        _skipped(point, f"did not resolve to a callable, but to {register!r}")
        return
    try:
        cast("Callable[[], object]", register)()
    except Exception as error:
        _logger.exception("registration callable of %s raised", point)
        _skipped(point, f"registration callable {point.value!r} raised {error!r}")


def _skipped(point: EntryPoint, why: str) -> None:
    warn_caller(
        f"Profile plugin {point.name!r} of distribution {_distribution(point)!r} ({point.group}) is skipped: "
        f"{why}. Mend or uninstall it."
    )


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else ""
