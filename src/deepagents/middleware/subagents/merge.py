"""Find out what a subagent changed, as an update that merges with what its siblings changed.

A subagent returns its whole state. Written as it is, that would undo the work of parallel siblings, bring
deleted files back and count inherited values twice, so only the difference to what it was given goes back.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy, deepcopy
from typing import Any, TypeAlias, cast

from deepagents._state.runtime import Channel, Channels, reducers_of, value_after_write
from deepagents.backends.filedata import file_data_to_string, file_version
from deepagents.backends.state import reduce_files

Items: TypeAlias = Mapping[Any, Any]
Like: TypeAlias = Callable[[Any, Any], bool]

_GONE = object()
_ROUNDING = 1e-9
# Comparing is quadratic here; above these sizes the whole value is written instead.
_MAX_PAIRS = 250_000
_MAX_SHIFTS = 1_000


def diff_state(
    given: Mapping[str, Any], returned: Mapping[str, Any], channels: Channels, workers: Channels
) -> dict[str, Any]:
    """Return the update that turns `given` into `returned`, in terms of the parent's channels.

    `workers` are the subagent's own channels. Only one that keeps files as the parent does returns all of
    them, so only there a file that is missing was deleted.
    """
    reducers, own = reducers_of(channels), reducers_of(workers)
    update: dict[str, Any] = {}
    for key, value in returned.items():
        if key not in given:
            update[key] = value
        elif reducers.get(key) is reduce_files:
            update[key] = _find_changed_files(given[key], value, whole=own.get(key) is reduce_files)
        elif not same(given[key], value):
            update[key] = _difference(given[key], value, channels, key)
    return update


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; what cannot be compared is not."""
    if one is other:
        return True
    with suppress(Exception):
        equal: Any = one == other
        # Arrays compare element by element.
        return bool(equal.all()) if hasattr(equal, "all") else bool(equal)
    return False


def _difference(before: Any, after: Any, channels: Channels, key: str) -> Any:
    """Return the first update that makes the channel hold `after`, or `after` itself if none does."""
    if key not in channels:
        return after
    # Exact first. What was added up in floats seldom comes out the same twice.
    for like in (same, _close):
        for update in _candidates(before, after):
            if _explains(channels[key], before, update, after, like):
                return update
    return after


def _explains(channel: Channel, before: Any, update: Any, after: Any, like: Like) -> bool:
    """Return whether a channel that holds one value would hold the other after an update."""
    # `operator.add` changes nothing in place, so the costly copies can be left out.
    adds = getattr(channel, "operator", None) is operator.add
    held, trial, wanted = (before, update, after) if adds else _apart(before, update, after)
    with suppress(Exception):
        # A reducer may refuse an update that no agent ever wrote: then it is not the one.
        return like(value_after_write(channel, held, trial), wanted)
    return False


def _apart(*values: Any) -> tuple[Any, ...]:
    """Return copies that a reducer may change; parts that the values share stay shared."""
    with suppress(Exception):
        return deepcopy(values)
    # Locks, clients and other open things cannot be copied deep.
    return tuple(map(copy, values))


def _close(one: Any, other: Any) -> bool:
    """Return whether two values are equal but for the rounding of floats."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_ROUNDING)
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast(Items, one), cast(Items, other)
        return first.keys() == second.keys() and all(_close(first[key], second[key]) for key in first)
    return same(one, other)


def _candidates(before: Any, after: Any) -> Iterator[Any]:
    """Yield updates that may have been written, the smallest first: it merges best with others."""
    if isinstance(before, dict) and isinstance(after, dict):
        held, kept = cast(Items, before), cast(Items, after)
        yield _items(held, kept, _inside)
        yield _items(held, kept, lambda _, new: new)
        yield _items(held, kept, _least)
    elif isinstance(before, list | tuple | str | bytes) and isinstance(after, type(cast(Any, before))):
        yield from _find_added(cast("Sequence[Any]", before), after)
    # The difference of two bools is a number.
    if not isinstance(before, bool):
        with suppress(Exception):
            yield cast(Any, after) - before
    yield after


def _items(before: Items, after: Items, change: Callable[[Any, Any], Any]) -> dict[Any, Any]:
    """Return the entries that differ; `None` stands for one that is gone, as reducers usually take it."""
    gone = dict.fromkeys(before.keys() - after.keys())
    changed = {key: each for key, each in after.items() if not same(before.get(key, _GONE), each)}
    return {
        **gone,
        **{key: change(before[key], new) if key in before else new for key, new in changed.items()},
    }


def _inside(before: Any, after: Any) -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        return _items(cast(Items, before), cast(Items, after), _inside)
    return after


def _least(before: Any, after: Any) -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        return _items(cast(Items, before), cast(Items, after), _least)
    return next(_candidates(before, after))


def _find_added(before: Sequence[Any], after: Any) -> Iterator[Any]:
    """Yield the items added behind the part of `before` that is left, in front of it, and anywhere."""
    count = len(before)
    if count and after:
        if kept := _count_kept(before, after):
            yield after[kept:]
        if same(after[-count:], before):
            yield after[:-count]
    if isinstance(before, list | tuple) and count * len(after) <= _MAX_PAIRS:
        known = list(before)
        yield type(before)(each for each in after if not _take_out(known, each))


def _count_kept(before: Sequence[Any], after: Any) -> int:
    """Return how many of the last items of `before` stand at the start of `after`."""
    count = len(before)
    indexes = (at for at in range(min(count, _MAX_SHIFTS)) if same(before[at], after[0]))
    return next((count - at for at in indexes if same(before[at:], after[: count - at])), 0)


def _take_out(known: list[Any], each: Any) -> bool:
    """Remove a value from the known ones; return whether it was there."""
    at = next((at for at, other in enumerate(known) if same(other, each)), None)
    if at is not None:
        known.pop(at)
    return at is not None


def _find_changed_files(
    before: dict[str, Any], returned: Mapping[str, Any], *, whole: bool
) -> dict[str, Any]:
    after = reduce_files(None, [returned])
    gone = before.keys() - after.keys() if whole else before.keys() & (returned.keys() - after.keys())
    update: dict[str, Any] = {path: {"delete": file_version(before[path])} for path in gone}
    for path, data in after.items():
        if path not in before or not same(before[path], data):
            update[path] = {**data, "base": file_data_to_string(before[path]) if path in before else None}
    return update
