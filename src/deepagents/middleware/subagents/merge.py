"""What a subagent changed, said so that the parent can merge it with what its siblings changed.

A subagent returns its whole state. Handing that on would undo the work of siblings that ran beside it,
bring deleted
files back and count inherited values twice, so only the difference to what it was given goes back.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from deepagents.backends.filedata import file_data_to_string, file_version, reduce_files

Reducer = Callable[..., Any]


def changes(
    given: Mapping[str, Any],
    returned: Mapping[str, Any],
    reducers: Mapping[str, Reducer],
    workers: Mapping[str, Reducer],
) -> dict[str, Any]:
    """Return the update that turns `given` into `returned`, in terms of each channel's reducer.

    `workers` are the subagent's own reducers. Only one that keeps files as the parent does returns all of
    them, so only there a file that is missing was deleted.
    """
    update: dict[str, Any] = {}
    for key, value in returned.items():
        if key not in given:
            update[key] = value
        elif reducers.get(key) is reduce_files:
            update[key] = _changed_files(given[key], value, whole=workers.get(key) is reduce_files)
        elif not _same(given[key], value):
            update[key] = _difference(given[key], value, reducers.get(key))
    return update


def _difference(before: Any, after: Any, reducer: Reducer | None) -> Any:
    if reducer is None:
        return after
    match before, after:
        case dict(), dict():
            return _changed_items(cast("dict[Any, Any]", before), cast("dict[Any, Any]", after))
        case list(), list():
            return _appended(cast("list[Any]", before), cast("list[Any]", after))
        case (int() | float(), int() | float()) if reducer is operator.add:
            return after - before
        case _:
            return after


def _changed_files(before: dict[str, Any], returned: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
    after = reduce_files(None, [returned])
    gone = before.keys() - after.keys() if whole else before.keys() & (returned.keys() - after.keys())
    update: dict[str, Any] = {path: {"delete": file_version(before[path])} for path in gone}
    for path, data in _changed_items(before, after).items():
        base = file_data_to_string(before[path]) if path in before else None
        update[path] = {**data, "base": base}
    return update


def _changed_items(before: dict[Any, Any], after: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in after.items() if key not in before or not _same(before[key], value)}


def _appended(before: list[Any], after: list[Any]) -> list[Any]:
    inherited = len(after) >= len(before) and _same(after[: len(before)], before)
    return after[len(before) :] if inherited else after


def _same(before: Any, after: Any) -> bool:
    if before is after:
        return True
    try:
        return bool(before == after)
    except (TypeError, ValueError):
        return False
