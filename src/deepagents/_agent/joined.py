"""Run adjacent middleware of this library as one layer around the model and around tools.

LangChain wraps each hook of each middleware in a trace span, whether anything is traced or not: 0.05 ms, and
0.2 ms and two threads where it is awaited (langchain 1.4). Ours are a dozen layers, so they share one span.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelResponse,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AIMessage
from langgraph.types import Command

from deepagents._async import Coro, IOCall, arun, run
from deepagents.middleware._base import Middleware, Request, Response, ToolResult, unshare_prompt

_WRAPS: Final = (("wrap_model_call", "awrap_model_call"), ("wrap_tool_call", "awrap_tool_call"))
_LIBRARY: Final = __name__.partition(".")[0]
_PLAIN: Final = {name: vars(AgentMiddleware)[name] for pair in _WRAPS for name in pair}


def join_layers(stack: Sequence[Middleware]) -> list[Middleware]:
    """Return the stack with each run of adjacent middleware of ours as one layer, where its first stands.

    The members stay in the stack without their wrapping hooks, so that their tools, state and other hooks are
    found there by name. A caller's middleware with a wrapping hook parts the runs, also one of a subclass of
    ours: its hooks are the caller's code.
    """
    joined: list[Middleware] = []
    wraps = [each for each in stack if _has_wraps(each)]
    groups = [list(group) for can, group in groupby(wraps, _can_join) if can]
    firsts = {id(group[0]): group for group in groups if len(group) > 1}
    shells = {id(each): _without_wraps(each) for group in firsts.values() for each in group}
    for each in stack:
        if group := firsts.get(id(each)):
            number = len([layer for layer in joined if isinstance(layer, JoinedLayers)]) + 1
            joined.append(JoinedLayers([shells[id(member)] for member in group], number))
        joined.append(shells.get(id(each), each))
    return joined


class JoinedLayers(AgentMiddleware[Any, Any, Any]):
    """Several middleware as one layer; the first is the outermost."""

    trace_policy = TracePolicy(process_inputs=omit_payload)

    def __init__(self, members: Sequence[Middleware], number: int) -> None:
        super().__init__()
        # Numbered, since LangChain refuses two middleware of one name.
        self._name = f"DeepAgentLayers{number}"
        self._around_model, self._around_tool = (list(_codes(members, wrap)) for wrap, _ in _WRAPS)

    @property
    def name(self) -> str:
        """The name of the span in traces."""
        return self._name

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Call the model through all members."""
        return run(_call_model(self._around_model, request, handler, awaits=False))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Call the model through all members."""
        return await arun(_call_model(self._around_model, request, handler, awaits=True))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], ToolResult]) -> ToolResult:
        """Run a tool through all members."""
        return run(_ToolLayers(self._around_tool, handler, awaits=False).code(request))

    async def awrap_tool_call(
        self, request: Any, handler: Callable[[Any], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run a tool through all members."""
        return await arun(_ToolLayers(self._around_tool, handler, awaits=True).code(request))


class _ToolLayers:
    """What one layer calls to run the tool: the layers inside it, and then LangChain's handler."""

    __slots__ = ("_awaits", "_handler", "_layers")

    def __init__(self, layers: Sequence[Any], handler: Callable[[Any], Any], *, awaits: bool) -> None:
        self._layers, self._handler, self._awaits = layers, handler, awaits

    def __call__(self, request: Any) -> Any:
        return arun(self.code(request)) if self._awaits else run(self.code(request))

    async def code(self, request: Any) -> Any:
        """Return the result, without a driver of its own between two layers."""
        if not self._layers:
            handler = self._handler
            return await IOCall(lambda: handler(request), lambda: handler(request))
        outermost, *inside = self._layers
        return await outermost(request, _ToolLayers(inside, self._handler, awaits=self._awaits))


class _ModelLayers(_ToolLayers):
    """The same around the model, where a layer may return a command for the state with its response."""

    __slots__ = ("commands",)

    def __init__(self, layers: Sequence[Any], handler: Callable[[Any], Any], *, awaits: bool) -> None:
        super().__init__(layers, handler, awaits=awaits)
        self.commands: list[Command[Any]] = []

    async def code(self, request: Any) -> Any:
        """Return the response alone; the commands, innermost first, are kept until the layer is done."""
        # A layer that asks again drops what the try before brought, as in LangChain's own chain.
        self.commands.clear()
        if not self._layers:
            handler, request = self._handler, unshare_prompt(request)
            result = await IOCall(lambda: handler(request), lambda: handler(request))
            return _part(result, self.commands)
        outermost, *inside = self._layers
        following = _ModelLayers(inside, self._handler, awaits=self._awaits)
        result = await outermost(request, following)
        self.commands += following.commands
        return _part(result, self.commands)


async def _call_model(
    layers: Sequence[Any], request: Request, handler: Callable[[Request], Any], *, awaits: bool
) -> Any:
    around = _ModelLayers(layers, handler, awaits=awaits)
    response = await around.code(request)
    if not around.commands:
        return response
    if len(around.commands) == 1:
        return ExtendedModelResponse(response, around.commands[0])
    # LangGraph takes a list of pairs, in which no write to a key replaces another.
    writes = [pair for each in around.commands for pair in _pairs(each.update)]
    return ExtendedModelResponse(response, Command(update=writes))


def _pairs(update: Any) -> list[tuple[str, Any]]:
    return list(cast("dict[str, Any]", update).items()) if isinstance(update, dict) else list(update or ())


def _part(result: Any, commands: list[Command[Any]]) -> Any:
    if isinstance(result, ExtendedModelResponse):
        extended = cast("ExtendedModelResponse[Any]", result)
        if extended.command is not None:
            commands.append(extended.command)
        return extended.model_response
    return ModelResponse(result=[result]) if isinstance(result, AIMessage) else result


def _codes(members: Sequence[Middleware], wrap: str) -> Iterator[Callable[..., Coro[Any]]]:
    for member in members:
        # A member's own class has LangChain's empty hooks by now; the hook is on the class behind it.
        method = getattr(type(member).__mro__[1], wrap)
        if code := getattr(method, "io_code", None):
            yield code.__get__(member)


def _has_wraps(middleware: Middleware) -> bool:
    return any(getattr(type(middleware), name) is not plain for name, plain in _PLAIN.items())


def _can_join(middleware: Middleware) -> bool:
    """Return whether each wrapping hook is one `async def` of ours, for blocking and awaiting callers."""
    kind = type(middleware)
    if kind.__module__.partition(".")[0] != _LIBRARY:
        return False
    for blocking, awaiting in _WRAPS:
        codes = [getattr(getattr(kind, name), "io_code", None) for name in (blocking, awaiting)]
        untouched = all(getattr(kind, name) is _PLAIN[name] for name in (blocking, awaiting))
        if not untouched and (codes[0] is None or codes[0] is not codes[1]):
            return False
    return True


def _without_wraps(middleware: Middleware) -> Middleware:
    """Return the middleware once more, with a class that has LangChain's empty hooks, which it leaves out."""
    shell = object.__new__(_shell_of(type(middleware)))
    # The same attributes, not a copy: what a caller changes later on the own instance counts here too.
    shell.__dict__ = middleware.__dict__
    return shell


@cache
def _shell_of(kind: type[Middleware]) -> type[Middleware]:
    return type(kind.__name__, (kind,), {**_PLAIN, "__module__": kind.__module__, "__slots__": ()})
