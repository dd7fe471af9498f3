"""The messages inside what a tool returned, wherever it put them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias, cast

from langchain_core.messages import ToolMessage, convert_to_messages
from langgraph.types import Command, Overwrite

from deepagents._flow import Flow

Change: TypeAlias = Callable[[Any], Flow[Any]]


def over_messages(result: Any, change: Change) -> Flow[Any]:
    """Return what a tool returned with `change` made to each message in it and to nothing else."""
    if isinstance(result, list):
        return (yield from _over_each(cast("list[Any]", result), lambda each: over_messages(each, change)))
    if isinstance(result, ToolMessage):
        return (yield from change(result))
    if not isinstance(result, Command):
        return result
    command = cast("Command[Any]", result)
    update = yield from _over_update(command.update, change)
    return command if update is command.update else replace(command, update=update)


def _over_update(update: Any, change: Change) -> Flow[Any]:
    if isinstance(update, dict):
        given = cast("dict[str, Any]", update)
        if "messages" not in given:
            return given
        return {**given, "messages": (yield from _over_value(given["messages"], change))}
    if not isinstance(update, (list, tuple)):
        return update
    pairs: list[Any] = []
    for pair in cast("list[Any] | tuple[Any, ...]", update):
        key, value = cast("tuple[Any, Any]", pair)
        pairs.append((key, (yield from _over_value(value, change)) if key == "messages" else value))
    return pairs


def _over_value(value: Any, change: Change) -> Flow[Any]:
    if isinstance(value, Overwrite):
        return Overwrite((yield from _over_value(value.value, change)))
    if not isinstance(value, list):
        return (yield from _over_message(value, change))
    return (yield from _over_each(cast("list[Any]", value), lambda each: _over_message(each, change)))


def _over_each(values: list[Any], change: Change) -> Flow[list[Any]]:
    changed: list[Any] = []
    for value in values:
        changed.append((yield from change(value)))
    return changed


def _over_message(value: Any, change: Change) -> Flow[Any]:
    """Return a changed message, or what stands for one as it is; a dict may be a message in short."""
    message: Any = _read(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
    changed = yield from change(message)
    return cast(Any, value) if changed is message else changed


def _read(short: dict[str, Any]) -> Any:
    try:
        return convert_to_messages([short])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):
        return short
