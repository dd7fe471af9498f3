"""Tools that appear when their skill is opened, and stay."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool

from deepagents._paths import normalise
from deepagents.errors import BackendError
from deepagents.middleware._base import tool_name
from deepagents.middleware.skills.pinning import pinned_path
from deepagents.middleware.skills.resolving import ToolShelf
from deepagents.middleware.skills.state import SkillMetadata
from deepagents.tools import specs_by_name

_INCLUDE = "include_tools"
_DEFERRED = "defer_loading"
_log = logging.getLogger(__name__)


def with_tools(skills: Iterable[SkillMetadata]) -> dict[str, list[str]]:
    """Return, by its normalised path, what each skill includes, of those that include anything."""
    return {
        path: names
        for each in skills
        if (names := each["metadata"].get(_INCLUDE, "").split()) and (path := _normal(each["path"]))
    }


def paths_of(skills: Iterable[SkillMetadata]) -> frozenset[str]:
    """Return the normalised paths of skills."""
    return frozenset(path for each in skills if (path := _normal(each["path"])))


def opened(messages: Sequence[AnyMessage], *, with_readings: bool = False) -> list[str]:
    """Return the paths of skills that were pinned, in the order of the messages.

    `with_readings` adds all files that were read, as far as messages tell: a person's answer in the place of
    a file looks no different there.
    """
    specs = specs_by_name()
    asked = {
        call["id"]: spec.path_in(call["args"])
        for message in messages
        if with_readings and isinstance(message, AIMessage)
        for call in message.tool_calls
        if (spec := specs.get(call["name"])) and spec.effect == "read"
    }
    found = [_shown(message, asked) for message in messages]
    return list(dict.fromkeys(path for path in found if path is not None))


def _shown(message: AnyMessage, asked: Mapping[str | None, str | None]) -> str | None:
    if isinstance(message, ToolMessage):
        return asked.get(message.tool_call_id) if message.status != "error" else None
    pinned = pinned_path(message)
    return None if pinned is None else _normal(pinned)


def _normal(path: str) -> str | None:
    try:
        return normalise(path)
    except BackendError:
        return None


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a request with those that skills disclosed, and the record of the latter."""

    tools: Sequence[Any]
    record: Mapping[str, str]


async def offer(
    shelf: ToolShelf,
    request_tools: Sequence[Any],
    names: Sequence[str],
    record: Mapping[str, str],
    run: tuple[Any, str | None],
) -> Offer:
    """Add the tools that skills included under these names; those of the record keep their places.

    Raises:
        TypeError: as `ToolShelf.find`.
    """
    standing = {name: each for each in request_tools if (name := tool_name(each))}
    wanted = dict.fromkeys([*record.values(), *names])
    found = await shelf.find([name for name in wanted if name not in standing], *run)
    grown = dict(record)
    for name in names:
        if name not in standing and not found.get(name):
            _log.warning("a skill includes the tool %r, which is not there", name)
        for each in [standing[name]] if is_deferred(standing.get(name)) else found.get(name, ()):
            grown.setdefault(tool_name(each) or name, name)
    shown = [_undeferred(each) if tool_name(each) in grown else each for each in request_tools]
    added = [named(found.get(include, ()), tool) for tool, include in grown.items() if tool not in standing]
    return Offer([*shown, *(each for each in added if each is not None)], grown)


def named(tools: Iterable[BaseTool], name: str) -> BaseTool | None:
    """Return the tool of this name."""
    return next((each for each in tools if each.name == name), None)


def is_deferred(tool: Any) -> bool:
    """Tell whether a provider is to load a tool later."""
    return bool(_settings(tool).get(_DEFERRED))


def _undeferred(tool: Any) -> Any:
    if not is_deferred(tool):
        return tool
    rest = {key: value for key, value in _settings(tool).items() if key != _DEFERRED}
    return tool.model_copy(update={"extras": rest or None}) if isinstance(tool, BaseTool) else rest


def _settings(tool: Any) -> Mapping[str, Any]:
    if isinstance(tool, dict):
        return cast("dict[str, Any]", tool)
    return getattr(tool, "extras", None) or {}
