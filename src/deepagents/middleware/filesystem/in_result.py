"""The messages inside what a tool returned, wherever it put them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias, cast

from langchain_core.messages import ToolMessage, convert_to_messages
from langgraph.types import Command, Overwrite

from deepagents._async import Coro

Change: TypeAlias = Callable[[Any], Coro[Any]]


async def over_messages(result: Any, change: Change) -> Any:
    """Return what a tool returned with `change` made to each message in it and to nothing else."""
    if isinstance(result, list):
        return await _over_each(cast("list[Any]", result), lambda each: over_messages(each, change))
    if isinstance(result, ToolMessage):
        return await change(result)
    if not isinstance(result, Command):
        return result
    command = cast("Command[Any]", result)
    update = await _over_update(command.update, change)
    return command if update is command.update else replace(command, update=update)


async def _over_update(update: Any, change: Change) -> Any:
    if isinstance(update, dict):
        given = cast("dict[str, Any]", update)
        if "messages" not in given:
            return given
        return {**given, "messages": await _over_value(given["messages"], change)}
    if not isinstance(update, (list, tuple)):
        return update
    pairs: list[Any] = []
    for pair in cast("list[Any] | tuple[Any, ...]", update):
        key, value = cast("tuple[Any, Any]", pair)
        pairs.append((key, await _over_value(value, change) if key == "messages" else value))
    return pairs


async def _over_value(value: Any, change: Change) -> Any:
    if isinstance(value, Overwrite):
        return Overwrite(await _over_value(value.value, change))
    if not isinstance(value, list):
        return await _over_message(value, change)
    return await _over_each(cast("list[Any]", value), lambda each: _over_message(each, change))


async def _over_each(values: list[Any], change: Change) -> list[Any]:
    changed: list[Any] = []
    for value in values:
        changed.append(await change(value))
    return changed


async def _over_message(value: Any, change: Change) -> Any:
    """Return a changed message, or what stands for one as it is; a dict may be a message in short."""
    message: Any = _read(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
    changed = await change(message)
    return cast(Any, value) if changed is message else changed


def _read(short: dict[str, Any]) -> Any:
    try:
        return convert_to_messages([short])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):
        return short
