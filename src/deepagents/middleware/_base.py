"""Write each hook of a middleware once, as a coroutine: LangChain gets its sync and async methods.

Adjacent middleware of this library run as one layer around the model and around tools. LangChain wraps each
hook of each middleware in a trace span, whether anything is traced or not: 0.05 ms, and 0.2 ms and two
threads where it is awaited (langchain 1.4). Ours are a dozen layers, so they share one span.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial, wraps
from inspect import signature
from itertools import groupby
from typing import Any, Final, TypeAlias, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelResponse,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AIMessage
from langgraph.types import Command

from deepagents._async import Coro, IOCall, arun, run, sync_and_async
from deepagents.middleware._requests import Request, Response, ToolResult

Middleware: TypeAlias = AgentMiddleware[Any, Any, Any]
Hook: TypeAlias = Callable[..., Coro[Any]]
Hooks: TypeAlias = tuple[Hook | None, Hook | None]
"""The `async def` around the model and the one around tools."""
Drive: TypeAlias = Callable[[Coro[Any]], Any]

_WRAPS: Final = (("wrap_model_call", "awrap_model_call"), ("wrap_tool_call", "awrap_tool_call"))
_LIBRARY: Final = __name__.partition(".")[0]
_PLAIN: Final = {name: vars(AgentMiddleware)[name] for pair in _WRAPS for name in pair}
_HOOKS = {
    "_before_agent": ("before_agent", "abefore_agent"),
    "_after_agent": ("after_agent", "aafter_agent"),
    "_before_model": ("before_model", "abefore_model"),
    "_after_model": ("after_model", "aafter_model"),
    "_around_model": ("wrap_model_call", "awrap_model_call"),
    "_around_tool": ("wrap_tool_call", "awrap_tool_call"),
}


class BaseMiddleware(AgentMiddleware[Any, Any, Any]):
    """A middleware whose subclass writes hooks of a run, the model or tools as flows.

    LangChain installs only hooks that a class overrides, so twins are made for the flows of a subclass.
    """

    trace_policy = TracePolicy(process_inputs=omit_payload)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for flow_name, (blocking, awaiting) in _HOOKS.items():
            flow: Callable[..., Coro[Any]] | None = cls.__dict__.get(flow_name)
            if flow is not None:
                for name, method in zip((blocking, awaiting), sync_and_async(flow), strict=True):
                    setattr(cls, name, method)
            # The handler of a wrapping hook either blocks or awaits, so one form cannot do for both.
            elif blocking in cls.__dict__ and _is_inherited(cls, awaiting) and "wrap" not in blocking:
                setattr(cls, awaiting, _awaiting(cls.__dict__[blocking]))


def _is_inherited(kind: type, hook: str) -> bool:
    """Return whether a class has a hook from LangChain's base class only, where it does nothing."""
    return getattr(kind, hook) is getattr(AgentMiddleware, hook)


def has_hook_after_model(middleware: Middleware) -> bool:
    """Return whether a middleware has a node of its own behind the model's."""
    return not all(_is_inherited(type(middleware), hook) for hook in _HOOKS["_after_model"])


def _awaiting(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Make the awaiting form of a hook that does no I/O, so that subclasses reach it through `super()`."""

    @wraps(hook)
    async def awaiting(self: Any, *args: Any, **options: Any) -> Any:
        # By name: where a subclass overrides the blocking form alone, that is the one to run.
        return getattr(self, hook.__name__)(*args, **options)

    # LangGraph looks through `__wrapped__`, and would take this for a blocking function.
    del awaiting.__wrapped__
    vars(awaiting)["__signature__"] = signature(hook)
    return awaiting


def inner(handler: Callable[[Any], Any], request: Any) -> Awaitable[Any]:
    """Call the next layer, blocking or awaiting, as this one was called."""
    code = getattr(handler, "code", None)
    if code is not None:
        return code(request)
    call = partial(handler, request)
    return IOCall(call, call)


def join_layers(stack: Sequence[Middleware]) -> list[Middleware]:
    """Return the stack with each run of adjacent middleware of ours as one layer, where its first stands.

    The members stay in the stack without their wrapping hooks, so that their tools, state and other hooks are
    found there by name. A caller's middleware with a wrapping hook parts the runs, also one of a subclass of
    ours: its hooks are the caller's code.
    """
    joined: list[Middleware] = []
    number = 0
    hooked = [(each, _hooks_of(type(each))) for each in stack]
    for _, adjacent in groupby(hooked, lambda pair: pair[1] is None):
        group = list(adjacent)
        members = [(each, hooks) for each, hooks in group if hooks and any(hooks)]
        if len(members) < 2:
            joined += [each for each, _ in group]
            continue
        number += 1
        for each, hooks in group:
            if each is members[0][0]:
                joined.append(JoinedLayers(members, number))
            joined.append(_without_wraps(each) if any(hooks or ()) else each)
    return joined


class JoinedLayers(AgentMiddleware[Any, Any, Any]):
    """Several middleware as one layer; the first is the outermost."""

    trace_policy = TracePolicy(process_inputs=omit_payload)

    def __init__(self, members: Sequence[tuple[Middleware, Hooks]], number: int) -> None:
        super().__init__()
        # Numbered, since LangChain refuses two middleware of one name.
        self._name = f"DeepAgentLayers{number}"
        self._around_model: list[Hook] = [hook.__get__(each) for each, (hook, _) in members if hook]
        self._around_tool: list[Hook] = [hook.__get__(each) for each, (_, hook) in members if hook] or [
            _pass_on
        ]

    @property
    def name(self) -> str:
        """The name of the span in traces."""
        return self._name

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Call the model through all members."""
        return run(self._call_model(request, handler, run))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Call the model through all members."""
        return await arun(self._call_model(request, handler, arun))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], ToolResult]) -> ToolResult:
        """Run a tool through all members."""
        return run(self._call_tool(request, handler, run))

    async def awrap_tool_call(
        self, request: Any, handler: Callable[[Any], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run a tool through all members."""
        return await arun(self._call_tool(request, handler, arun))

    def _call_tool(self, request: Any, handler: Callable[[Any], Any], drive: Drive) -> Coro[Any]:
        outermost, *inside = self._around_tool
        for hook in reversed(inside):
            handler = _Layer(hook, handler, drive)
        return outermost(request, handler)

    async def _call_model(self, request: Request, handler: Callable[[Request], Any], drive: Drive) -> Any:
        commands: list[Command[Any]] = []
        for hook in reversed(self._around_model):
            handler = _ModelLayer(hook, handler, drive, commands)
        response = await inner(handler, request)
        if not commands:
            return response
        if len(commands) == 1:
            return ExtendedModelResponse(response, commands[0])
        # LangGraph takes a list of pairs, in which no write to a key replaces another.
        writes = [pair for each in commands for pair in _pairs(each.update)]
        return ExtendedModelResponse(response, Command(update=writes))


async def _pass_on(request: Any, handler: Callable[[Any], Any]) -> Any:
    return await inner(handler, request)


class _Layer:
    """One member around what follows: a further layer, or LangChain's handler."""

    __slots__ = ("_drive", "_following", "_hook")

    def __init__(self, hook: Hook, following: Callable[[Any], Any], drive: Drive) -> None:
        self._hook, self._following, self._drive = hook, following, drive

    def __call__(self, request: Any) -> Any:
        return self._drive(self.code(request))

    async def code(self, request: Any) -> Any:
        """Return the result, without a driver of its own between two layers."""
        return await self._hook(request, self._following)


class _ModelLayer(_Layer):
    """The same around the model, where a layer may return a command for the state with its response."""

    __slots__ = ("_commands",)

    def __init__(
        self, hook: Hook, following: Callable[[Any], Any], drive: Drive, commands: list[Command[Any]]
    ) -> None:
        self._hook, self._following, self._drive, self._commands = hook, following, drive, commands

    async def code(self, request: Any) -> Any:
        """Return the response alone; the commands of all layers are kept together, innermost first."""
        # A layer that asks again drops what the try before brought, as in LangChain's own chain: only
        # layers further in can have written so far.
        self._commands.clear()
        result = await self._hook(request, self._following)
        if type(result) is ModelResponse:
            return result
        if isinstance(result, ExtendedModelResponse):
            extended = cast("ExtendedModelResponse[Any]", result)
            if extended.command is not None:
                self._commands.append(extended.command)
            return extended.model_response
        return ModelResponse(result=[result]) if isinstance(result, AIMessage) else result


def _pairs(update: Any) -> list[tuple[str, Any]]:
    return list(cast("dict[str, Any]", update).items()) if isinstance(update, dict) else list(update or ())


def _hooks_of(kind: type[Middleware]) -> Hooks | None:
    """Return the `async def` behind the wrapping hooks of a class, `None` if a hook is not this library's."""
    if kind.__module__.partition(".")[0] == _LIBRARY:
        return _find_hooks(kind)
    return None if any(getattr(kind, name) is not plain for name, plain in _PLAIN.items()) else (None, None)


@cache
def _find_hooks(kind: type[Middleware]) -> Hooks | None:
    found: list[Hook | None] = []
    for names in _WRAPS:
        blocking, awaiting = (getattr(kind, name) for name in names)
        codes = [getattr(hook, "io_code", None) for hook in (blocking, awaiting)]
        is_plain = blocking is _PLAIN[names[0]] and awaiting is _PLAIN[names[1]]
        if not is_plain and (codes[0] is None or codes[0] is not codes[1]):
            return None
        found.append(codes[0])
    return found[0], found[1]


def _without_wraps(middleware: Middleware) -> Middleware:
    """Return the middleware once more, with a class that has LangChain's empty hooks, which it leaves out."""
    shell = object.__new__(_shell_of(type(middleware)))
    # The same attributes, not a copy: what a caller changes later on the own instance counts here too.
    shell.__dict__ = middleware.__dict__
    return shell


@cache
def _shell_of(kind: type[Middleware]) -> type[Middleware]:
    return type(kind.__name__, (kind,), {**_PLAIN, "__module__": kind.__module__, "__slots__": ()})
