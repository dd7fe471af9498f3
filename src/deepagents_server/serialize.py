"""Turn what graphs hold into JSON, as clients of the protocol read it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final, cast

import orjson
from langgraph.types import Interrupt, StateSnapshot
from pydantic import BaseModel

_SIMPLE: Final = (str, int, float, dict, list, type(None), orjson.Fragment)
_DEPTH: Final = 100
_OPTIONS: Final = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


def now(later: float = 0.0) -> str:
    """Return the time of this machine, or the time so many seconds later, as the tables and clients have it.

    It is to be looked at. What the machines decide together, they decide by `server_time` of the tables.
    """
    return (datetime.now(UTC) + timedelta(seconds=later)).isoformat(timespec="microseconds")


def seconds_between(first: str, second: str) -> float:
    """Return how long it is from one time of the tables to another."""
    return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()


def dump(value: Any) -> bytes:
    """Write JSON; what has no form in JSON is shown as text."""
    try:
        return orjson.dumps(value, default=_plain, option=_OPTIONS)
    except TypeError:
        # A number of more than 64 bits, half of a pair of surrogates, or nesting without end.
        return orjson.dumps(_replace_unwritable(value), default=_plain, option=_OPTIONS)


def dump_text(value: Any) -> str:
    """Write JSON as text, for a column."""
    return dump(value).decode()


def load(text: str | bytes | None) -> Any:
    """Read what `dump` wrote; nothing is `None`."""
    return None if text is None else orjson.loads(text)


def _plain(value: Any) -> Any:
    """Give what JSON does not know a form; a function for each kind that graphs hold."""
    for kind, form in _FORMS.items():
        if isinstance(value, kind):
            return form(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return str(value)


_FORMS: Final[dict[type[Any] | tuple[type[Any], ...], Callable[[Any], Any]]] = {
    Interrupt: lambda value: {"value": value.value, "id": value.id},
    BaseModel: lambda value: value.model_dump(),
    Enum: lambda value: value.value,
    (set, frozenset, deque, tuple): list,
    Mapping: dict,
    (bytes, bytearray): lambda value: value.decode("utf-8", "replace"),
    BaseException: lambda value: f"{type(value).__name__}: {value}",
}


def _replace_unwritable(value: Any, depth: int = 0) -> Any:
    """Copy a value that JSON's writer refuses, without what it refuses."""
    plain: object = cast(object, value) if isinstance(value, _SIMPLE) else _plain(value)
    match plain:
        case str() as text:
            return text.encode("utf-8", "replace").decode()
        case int() as number:
            return number if -(2**63) <= number < 2**64 else str(number)
        case dict() | list() if depth > _DEPTH:
            return "..."
        case dict():
            pairs = cast(dict[Any, Any], plain).items()
            return {
                _replace_unwritable(str(key)): _replace_unwritable(each, depth + 1) for key, each in pairs
            }
        case list():
            return [_replace_unwritable(each, depth + 1) for each in cast(list[Any], plain)]
        case other:
            return other


def show_checkpoint(config: Any) -> dict[str, Any] | None:
    """Name a checkpoint as clients do."""
    if not config:
        return None
    configurable: dict[str, Any] = cast(dict[str, Any], config).get("configurable") or {}
    shown = {key: configurable.get(key) for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}
    return {**shown, "checkpoint_ns": shown["checkpoint_ns"] or ""}


def show_state(state: StateSnapshot) -> dict[str, Any]:
    """Show a state of a thread, with its tasks."""
    checkpoint = show_checkpoint(state.config)
    parent = show_checkpoint(state.parent_config)
    return {
        "values": state.values,
        "next": list(state.next),
        "tasks": [_show_task(task) for task in state.tasks],
        "metadata": state.metadata or {},
        "created_at": state.created_at,
        "checkpoint": checkpoint,
        "parent_checkpoint": parent,
        "interrupts": [_plain(each) for each in state.interrupts],
        "checkpoint_id": checkpoint and checkpoint["checkpoint_id"],
        "parent_checkpoint_id": parent and parent["checkpoint_id"],
    }


def _show_task(task: Any) -> dict[str, Any]:
    inner = task.state
    is_state = isinstance(inner, StateSnapshot)
    return {
        "id": task.id,
        "name": task.name,
        "path": list(task.path),
        "error": None if task.error is None else str(task.error),
        "interrupts": [_plain(each) for each in task.interrupts],
        "checkpoint": None if is_state or not inner else show_checkpoint(inner),
        "state": show_state(inner) if is_state else None,
        "result": task.result,
    }


def show_interrupts(state: StateSnapshot) -> dict[str, list[Any]]:
    """Return the questions that wait for a person, by the task that asks."""
    return {task.id: [_plain(each) for each in task.interrupts] for task in state.tasks if task.interrupts}
