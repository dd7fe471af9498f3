"""The tools that skills may disclose: a list, or whatever a caller's resolver finds by name."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable, iscoroutine
from threading import Lock
from typing import Any, Final, TypeAlias, cast

from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from deepagents._async import IOCall, as_io_call, gather
from deepagents.errors import ConfigError

SkillToolResolver: TypeAlias = Callable[
    [str, Runtime[Any]], Sequence[BaseTool] | Awaitable[Sequence[BaseTool]]
]
"""Finds the tools that a skill includes under a name, for the run at hand."""

SkillTools: TypeAlias = Sequence[BaseTool | Callable[..., Any]] | SkillToolResolver
_MOST_KEPT: Final = 256
_log = logging.getLogger(__name__)


class ToolShelf:
    """Finds skill tools by the name under which a skill includes them.

    A resolver is asked once in a run for each name; what it found is kept here under the run's own token.

    Raises:
        TypeError: for a single tool, a provider's dict, or what is neither a sequence nor callable.
        ConfigError: for two tools of one name.
    """

    def __init__(self, tools: SkillTools | None) -> None:
        self._resolver = _resolver(tools)
        self._listed = {} if tools is None or self._resolver else _by_name(cast("Sequence[Any]", tools))
        self._kept: dict[tuple[str, str], Sequence[BaseTool]] = {}
        self._lock = Lock()

    @property
    def needs_runs(self) -> bool:
        """Tell whether answers are worth keeping for a run."""
        return self._resolver is not None

    async def find(
        self, names: Sequence[str], runtime: Any, run: str | None
    ) -> dict[str, Sequence[BaseTool]]:
        """Find the tools of each name; one whose resolver fails has none this time.

        Raises:
            TypeError: when a resolver answers with no sequence of tools, or must be awaited and cannot be.
        """
        if self._resolver is None:
            return {name: [self._listed[name]] for name in names if name in self._listed}
        kept = {name: tools for name in names if (tools := self._kept.get((run or "", name))) is not None}
        missing = [name for name in names if name not in kept]
        answers = await gather([as_io_call(lambda name=name: self._asked(name, runtime)) for name in missing])
        found = {name: tools for name, tools in zip(missing, answers, strict=True) if tools is not None}
        self._keep(run, found)
        return {**kept, **found}

    async def _asked(self, name: str, runtime: Any) -> Sequence[BaseTool] | None:
        try:
            answer = await IOCall(
                lambda: self._ask(name, runtime), lambda: _awaited(self._ask(name, runtime))
            )
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                raise
            _log.warning("the resolver of skill tools failed for %r", name, exc_info=True)
            return None
        return _checked(name, answer)

    def _ask(self, name: str, runtime: Any) -> Any:
        return None if self._resolver is None else self._resolver(name, runtime)

    def _keep(self, run: str | None, found: Mapping[str, Sequence[BaseTool]]) -> None:
        if run is None:
            return
        with self._lock:
            self._kept.update({(run, name): tools for name, tools in found.items()})
            for oldest in list(self._kept)[: max(len(self._kept) - _MOST_KEPT, 0)]:
                del self._kept[oldest]


def _resolver(tools: SkillTools | None) -> SkillToolResolver | None:
    given: object = tools
    if isinstance(given, (BaseTool, str, bytes, Mapping)):
        raise TypeError(f"tools must be a sequence of tools or a resolver, got {given!r}; put it in a list")
    if given is None or isinstance(given, Sequence):
        return None
    if not callable(given):
        raise TypeError(f"tools must be a sequence of tools or a resolver, got {given!r}")
    return given


def _by_name(tools: Sequence[Any]) -> dict[str, BaseTool]:
    named: dict[str, BaseTool] = {}
    for given in tools:
        made = _as_tool(given)
        if made.name in named:
            raise ConfigError(f"two skill tools are named {made.name!r}; each needs a name of its own")
        named[made.name] = made
    return named


def _as_tool(given: object) -> BaseTool:
    if isinstance(given, BaseTool):
        return given
    if not callable(given):
        raise TypeError(
            f"a skill tool must be a BaseTool or a function, got {given!r}; a provider runs its own"
        )
    return as_tool(given)


def _awaited(answer: Any) -> Awaitable[Any]:
    return answer if isawaitable(answer) else _done(answer)


async def _done(answer: Any) -> Any:
    return answer


def _checked(name: str, answer: object) -> Sequence[BaseTool]:
    if isawaitable(answer):
        if iscoroutine(answer):
            answer.close()
        raise TypeError(
            f"the resolver of skill tools must be awaited for {name!r}; run the agent with ainvoke or astream"
        )
    if not isinstance(answer, Sequence) or isinstance(answer, (str, bytes)):
        raise TypeError(
            f"the resolver of skill tools must return a sequence of tools for {name!r}, got {answer!r}"
        )
    tools = cast("Sequence[object]", answer)
    for each in tools:
        if not isinstance(each, BaseTool):
            raise TypeError(
                f"the resolver of skill tools returned {each!r} for {name!r}, which is no BaseTool"
            )
    named: dict[str, BaseTool] = {}
    for each in cast("Sequence[BaseTool]", tools):
        named.setdefault(each.name, each)
    return list(named.values())
