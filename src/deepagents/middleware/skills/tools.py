"""Offer the tools that skills include, from the moment such a skill is opened."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import isawaitable, iscoroutine
from threading import Lock
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from deepagents._async import IOCall, as_io_call, gather
from deepagents._paths import normalise_if_valid
from deepagents.errors import ConfigError
from deepagents.middleware._requests import is_deferred, without_mark
from deepagents.middleware.skills.parse import INCLUDE
from deepagents.middleware.skills.prompt import find_pinned_path
from deepagents.middleware.skills.state import SkillMetadata
from deepagents.tools import specs_by_name
from deepagents.tools._tool import tool_name

SkillToolResolver: TypeAlias = Callable[
    [str, Runtime[Any]], Sequence[BaseTool] | Awaitable[Sequence[BaseTool]]
]
"""Finds the tools that a skill includes under a name, for the current run."""

SkillTools: TypeAlias = Sequence[BaseTool | Callable[..., Any]] | SkillToolResolver
_MAX_CACHED: Final = 256
_log = logging.getLogger(__name__)


class SkillToolSource:
    """Find skill tools by the name under which a skill includes them.

    A resolver is asked once in a run for each name; its answers are kept here under the run's own id.

    Raises:
        TypeError: for a single tool, a provider's dict, or what is neither a sequence nor callable.
        ConfigError: for two tools of one name.
    """

    def __init__(self, tools: SkillTools | None) -> None:
        given: object = tools
        if isinstance(given, (BaseTool, str, bytes, Mapping)) or not (
            given is None or isinstance(given, Sequence) or callable(given)
        ):
            raise TypeError(f"tools must be a sequence of tools or a resolver, got {given!r}; use a list")
        is_list = given is None or isinstance(given, Sequence)
        self._resolver: SkillToolResolver | None = None if is_list else cast("SkillToolResolver", given)
        self._listed = _by_name(cast("Sequence[Any]", given or ())) if is_list else {}
        self._cached: dict[tuple[str, str], Sequence[BaseTool]] = {}
        self._lock = Lock()

    @property
    def has_resolver(self) -> bool:
        """Whether answers are kept for a run."""
        return self._resolver is not None

    async def find(
        self, names: Sequence[str], runtime: Any, run: str | None
    ) -> dict[str, Sequence[BaseTool]]:
        """Find the tools of each name; a name whose resolver fails has none this time.

        Raises:
            TypeError: when a resolver returns no sequence of tools, or must be awaited and cannot be.
        """
        resolve = self._resolver
        if resolve is None:
            return {name: [self._listed[name]] for name in names if name in self._listed}
        cached = {name: self._cached[key] for name in names if (key := (run or "", name)) in self._cached}
        missing = [name for name in names if name not in cached]
        calls = [as_io_call(partial(_resolve, resolve, name, runtime)) for name in missing]
        answers = zip(missing, await gather(calls), strict=True)
        found = {name: tools for name, tools in answers if tools is not None}
        if run is not None:
            with self._lock:
                self._cached.update({(run, name): tools for name, tools in found.items()})
                for oldest in list(self._cached)[: max(len(self._cached) - _MAX_CACHED, 0)]:
                    del self._cached[oldest]
        return {**cached, **found}


async def _resolve(resolve: SkillToolResolver, name: str, runtime: Any) -> Sequence[BaseTool] | None:
    async def ask_and_await() -> Any:
        answer = resolve(name, runtime)
        return await answer if isawaitable(answer) else answer

    try:
        answer: Any = await IOCall(lambda: resolve(name, runtime), ask_and_await)
    except Exception as error:
        if isinstance(error, GraphBubbleUp):
            raise
        _log.warning("the resolver of skill tools failed for %r", name, exc_info=True)
        return None
    return _validate_answer(name, answer)


def _validate_answer(name: str, answer: object) -> Sequence[BaseTool]:
    if isawaitable(answer):
        if iscoroutine(answer):
            # A coroutine that is dropped without this warns that it was never awaited.
            answer.close()
        raise TypeError(
            f"the resolver of skill tools must be awaited for {name!r}; run the agent with ainvoke or astream"
        )
    if not isinstance(answer, Sequence) or isinstance(answer, (str, bytes)):
        raise TypeError(
            f"the resolver of skill tools must return a sequence of tools for {name!r}, got {answer!r}"
        )
    by_name: dict[str, BaseTool] = {}
    for each in cast("Sequence[object]", answer):
        if not isinstance(each, BaseTool):
            raise TypeError(
                f"the resolver of skill tools returned {each!r} for {name!r}, which is not a BaseTool"
            )
        by_name.setdefault(each.name, each)
    return list(by_name.values())


def _by_name(tools: Sequence[Any]) -> dict[str, BaseTool]:
    by_name: dict[str, BaseTool] = {}
    for given in tools:
        if not isinstance(given, BaseTool) and not callable(given):
            raise TypeError(
                f"a skill tool must be a BaseTool or a function, got {given!r}; a provider runs its own"
            )
        made: BaseTool = given if isinstance(given, BaseTool) else as_tool(given)
        if made.name in by_name:
            raise ConfigError(f"two skill tools are named {made.name!r}; each needs a name of its own")
        by_name[made.name] = made
    return by_name


def find_included_names(skills: Iterable[SkillMetadata]) -> dict[str, list[str]]:
    """Return, by its normalised path, the names that each skill includes, of those that include any."""
    return {
        path: names
        for each in skills
        if (names := each["metadata"].get(INCLUDE, "").split()) and (path := normalise_if_valid(each["path"]))
    }


def skill_paths(skills: Iterable[SkillMetadata]) -> frozenset[str]:
    """Return the normalised paths of skills."""
    return frozenset(path for each in skills if (path := normalise_if_valid(each["path"])))


def find_opened_paths(messages: Sequence[AnyMessage], *, with_reads: bool = False) -> list[str]:
    """Return the paths of pinned skills, in the order of the messages.

    `with_reads` adds all files that `read_file` answered, as far as messages show that: where a person
    answered instead of the tool, they look the same.
    """
    specs = specs_by_name()
    reads = {
        call["id"]: spec.path_in(call["args"])
        for message in messages
        if with_reads and isinstance(message, AIMessage)
        for call in message.tool_calls
        if (spec := specs.get(call["name"])) and spec.effect == "read"
    }
    found: dict[str, None] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            path = reads.get(message.tool_call_id) if message.status != "error" else None
        else:
            pinned = find_pinned_path(message)
            path = None if pinned is None else normalise_if_valid(pinned)
        if path is not None:
            found[path] = None
    return list(found)


async def disclose_tools(
    source: SkillToolSource,
    tools: Sequence[Any],
    names: Sequence[str],
    record: Mapping[str, str],
    runtime: Any,
    run: str | None,
) -> tuple[list[Any], dict[str, str]]:
    """Return a request's tools with those that opened skills include, and the record of the latter.

    The record maps tools to the names under which skills include them; its tools keep their order, since
    every change of order costs the provider's cache.

    Raises:
        TypeError: as `SkillToolSource.find`.
    """
    present = {name: each for each in tools if (name := tool_name(each))}
    wanted = dict.fromkeys([*record.values(), *names])
    found = await source.find([name for name in wanted if name not in present], runtime, run)
    grown = dict(record)
    for name in names:
        if name not in present and not found.get(name):
            _log.warning("a skill includes the tool %r, which is not there", name)
        for each in [present[name]] if is_deferred(present.get(name)) else found.get(name, ()):
            grown.setdefault(tool_name(each) or name, name)
    shown = [without_mark(each) if tool_name(each) in grown and is_deferred(each) else each for each in tools]
    added = [
        find_tool(found.get(include, ()), tool) for tool, include in grown.items() if tool not in present
    ]
    return [*shown, *(each for each in added if each is not None)], grown


def find_tool(tools: Iterable[BaseTool], name: str) -> BaseTool | None:
    """Return the tool of this name."""
    return next((each for each in tools if each.name == name), None)
