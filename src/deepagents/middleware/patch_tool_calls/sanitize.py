"""Make a message of the model one that checkpoints can save and strict providers take back."""

from __future__ import annotations

import json
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast
from uuid import uuid4

from langchain_core.messages import AIMessage

NewIds: TypeAlias = Mapping[str | None, list[str]]
"""For each id that several calls had: the ids that they have now, in the order of the calls."""

_ID_OF_BLOCK: Final = {
    "tool_use": "id",
    "tool_call": "id",
    "invalid_tool_call": "id",
    "function_call": "call_id",
}
_LARGEST: Final = 2**64
"""Checkpoints are MessagePack, which has no larger whole numbers (its specification, "int format family")."""
_DEEPEST: Final = 100
"""Levels of lists and dicts that arguments keep; what reads and saves them cannot follow without end."""
_LONGEST_ID: Final = 200
"""Characters of an id, which each request repeats; providers make ids of 20 to 60."""
_TOO_DEEP: Final = "(nested too deep to show)"


def sanitize(message: AIMessage) -> AIMessage:
    """Return the message with an id of its own for each call, and arguments that can be saved."""
    message, _ = separate_ids(message)
    if not message.tool_calls:
        return message
    parts = {"tool_calls": message.tool_calls, "content": message.content}
    changed = {name: _shallow(part, _DEEPEST) for name, part in parts.items()}
    same = all(changed[name] is part for name, part in parts.items())
    return message if same else message.model_copy(update=changed)


def shares_ids(message: AIMessage) -> bool:
    """Return whether calls of a message have no id, one that is too long, or one that another of them has."""
    ids = [call["id"] for call in _all_calls(message)]
    return not all(map(_is_usable, ids)) or len(set(ids)) < len(ids)


def _is_usable(call_id: str | None) -> bool:
    return call_id is not None and 0 < len(call_id) <= _LONGEST_ID


def separate_ids(message: AIMessage) -> tuple[AIMessage, NewIds]:
    """Make each call of a message have an id of its own; the first call with an id keeps it.

    LangGraph takes a call for answered when any result has its id, and providers refuse a second result. The
    ids stand in blocks of the content too, which some providers send back instead of `tool_calls`.
    """
    if not shares_ids(message):
        return message, {}
    calls = _all_calls(message)
    counts = Counter(call["id"] for call in calls)
    new: defaultdict[str | None, list[str]] = defaultdict(list)
    for old in (call["id"] for call in calls if not _is_usable(call["id"]) or counts[call["id"]] > 1):
        new[old].append(old if _is_usable(old) and not new[old] else f"call_{uuid4().hex}")
    renamed = _with_new_ids(calls, new)
    valid = len(message.tool_calls)
    update: dict[str, Any] = {"tool_calls": renamed[:valid], "invalid_tool_calls": renamed[valid:]}
    if isinstance(message.content, list):
        update["content"] = _with_new_ids(message.content, new, _ID_OF_BLOCK)
    return message.model_copy(update=update), new


def _with_new_ids(items: Iterable[Any], new: NewIds, keys: Mapping[str, str] | None = None) -> list[Any]:
    """Return calls, or blocks of content whose key for the id depends on their type, with the new ids."""
    left = {old: iter(ids) for old, ids in new.items()}
    made: list[Any] = []
    for item in items:
        fields: dict[str, Any] = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        key = "id" if keys is None else keys.get(fields.get("type", ""))
        new_id = next(left.get(fields.get(key), iter(())), None) if key else None
        made.append({**fields, key: new_id} if new_id else item)
    return made


def _all_calls(message: AIMessage) -> Sequence[Any]:
    return [*message.tool_calls, *message.invalid_tool_calls]


def _shallow(value: Any, levels: int) -> Any:
    """Return the same object, or one without what cannot be saved."""
    match value:
        # Before the numbers: `True` matches `int()` too.
        case bool() | str():
            return value
        case int() if not -_LARGEST // 2 <= value < _LARGEST:
            return _as_text(value)
        case dict() | list() if levels == 0:
            return _as_text(value)
        case dict():
            given = cast("dict[Any, Any]", value)
            made = {key: _shallow(each, levels - 1) for key, each in given.items()}
            return given if all(map(operator.is_, made.values(), given.values())) else made
        case list():
            items = cast("list[Any]", value)
            found = [_shallow(each, levels - 1) for each in items]
            return items if all(map(operator.is_, found, items)) else found
        case _:
            return value


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        return _TOO_DEEP
