"""Turn what a tool raises into an error result, so that the model reads it and the run goes on.

`ToolErrorMiddleware` is the outermost middleware, so that a caller's own retry sees the failure first.
It converts only what a tool raised: an error in a middleware is a bug, and reaches the caller. To tell
the two apart, `ToolOriginMiddleware` is the innermost and marks what passes it. A `RunConfigError` reaches
the caller as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from difflib import get_close_matches
from functools import partial
from traceback import walk_tb
from types import CodeType
from typing import Annotated, Any, Final, NoReturn, NotRequired, cast

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.channels import UntrackedValue
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, PydanticInvalidForJsonSchema, ValidationError
from typing_extensions import TypeIs

from deepagents._async import IOCall
from deepagents._state.programs import is_call_of_program
from deepagents._state.runtime import emit, writes_undone_on_failure
from deepagents._state.schema import NOT_SHARED
from deepagents._text import describe_exception, truncate
from deepagents.errors import AwaitableOnly, CodedError, ConfigError, ErrorCode, RunConfigError
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._repeats import note_repeat
from deepagents.middleware._requests import Request, Response, ToolResult, keeping
from deepagents.tools._arguments import describe_misfit, describe_unknown
from deepagents.tools._offered import OFFERED_CHANNEL
from deepagents.tools._tool import (
    SpecTool,
    failure_message,
    names_of_tools,
    offered_tools,
    tool_name,
)

_ORIGIN: Final = "raised_by_tool"
_MOST_CHARACTERS: Final = 4_000
_MOST_OF_FAILURE: Final = 10_100
_log = logging.getLogger(__name__)


class ToolErrorMiddleware(BaseMiddleware):
    """Turn what a tool raises into an error result with a code; `raise_errors=True` lets it end the run.

    The traceback goes to the log, once for each tool and line.
    """

    def __init__(self, *, raise_errors: bool = False) -> None:
        super().__init__()
        self.raise_errors = raise_errors
        self._logged: set[tuple[str, str, int]] = set()

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        try:
            return await inner(handler, request)
        except PydanticInvalidForJsonSchema as error:
            _name_tool(request.tools, error)
            raise

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        # A call that is cancelled is made again when the run goes on. One of a program is not, and others of
        # the program write beside it.
        is_alone = not is_call_of_program(request.tool_call["id"])
        with writes_undone_on_failure() if is_alone else nullcontext():
            try:
                return note_repeat(_explain_result(await inner(handler, request), request), request)
            except (GraphBubbleUp, RunConfigError):
                raise
            except Exception as error:
                if self.raise_errors or not _came_from_tool(error):
                    raise
                self._log_once(request.tool_call["name"], error)
                return _explain(error, request)

    def _log_once(self, tool: str, error: Exception) -> None:
        """Log where a tool failed, unless it has failed there before: a model may try many times."""
        code, line = _place_of(error)
        place = (tool, code.co_filename, line)
        # An error with a code is an answer that the tool chose.
        if not isinstance(error, CodedError) and place not in self._logged:
            self._logged.add(place)
            _log.warning("the tool %r failed, and the model was told so", tool, exc_info=error)


_Offered = Annotated[
    frozenset[str], UntrackedValue(frozenset[str], guard=False), PrivateStateAttr, NOT_SHARED
]


class OfferedState(AgentState[Any]):
    """State of an agent that knows which tools its model was offered last."""

    _offered_tools: NotRequired[_Offered]


class ToolOriginMiddleware(BaseMiddleware):
    """Mark what a tool raised, and emit an event for each failed call of the model, even if it is retried.

    As the innermost, it also notes which tools the model is offered: no result may name another.
    """

    state_schema = OfferedState

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        try:
            response = await inner(handler, request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            emit("model_failed", error=type(error).__name__)
            raise
        names = names_of_tools(request.tools)
        known: Mapping[str, Any] = cast("Mapping[str, Any]", request.state)
        if known.get(OFFERED_CHANNEL) == names:
            return response
        return keeping(response, [], {OFFERED_CHANNEL: names})

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        strict = isinstance(request.tool, SpecTool) and request.tool.spec.strict
        if strict and (unknown := _unknown_arguments(request)):
            call = request.tool_call
            text = f"{unknown}. Nothing was done."
            return failure_message(call["name"], call["id"] or "", "invalid_argument", text)
        try:
            return await inner(handler, request)
        except (GraphBubbleUp, RunConfigError):
            raise
        except Exception as error:
            if isinstance(error, NotImplementedError) and _can_only_be_awaited(request.tool, error):
                await IOCall(partial(_refuse_blocking, request.tool_call["name"], error), _pass)
            vars(error)[_ORIGIN] = True
            raise


def _name_tool(tools: Iterable[Any], error: PydanticInvalidForJsonSchema) -> None:
    """Raise the error of a tool that cannot be described to a model once more, with the tool's name."""
    for tool in tools:
        try:
            convert_to_openai_tool(tool)
        except PydanticInvalidForJsonSchema:
            raise ConfigError(
                f"no JSON schema describes an argument of the tool {tool_name(tool)!r}: {error.message}"
            ) from error


def _place_of(error: BaseException) -> tuple[CodeType, int]:
    """Return the function that raised an error, and the line."""
    *_, (frame, line) = walk_tb(error.__traceback__)
    return frame.f_code, line


def _can_only_be_awaited(tool: BaseTool | None, error: NotImplementedError) -> bool:
    """Return whether a tool has an `async` form, and no other: LangChain and its users raise this there."""
    kinds = [kind for kind in type(tool).__mro__ if kind is not BaseTool]
    return any("_arun" in vars(kind) for kind in kinds) and _place_of(error)[0].co_name == "_run"


def _refuse_blocking(name: str, error: Exception) -> NoReturn:
    raise AwaitableOnly(
        f"the tool {name!r} can only be awaited: run the agent with ainvoke() or astream(), or give the tool "
        "a form that blocks as well"
    ) from error


async def _pass() -> None:
    """Do nothing."""


def _explain_result(result: ToolResult, request: ToolCallRequest) -> ToolResult:
    """Add to a result what the model did not mean: a tool or arguments that are not there; and codes."""
    if not isinstance(result, ToolMessage) or "error_code" in result.additional_kwargs:
        return result
    if result.status != "error":
        return _name_ignored(result, request)
    if wrong := _wrong_arguments(request):
        call = request.tool_call
        return failure_message(call["name"], call["id"] or "", "invalid_argument", wrong)
    code: ErrorCode = "not_supported" if request.tool is None else "tool_failed"
    content = result.content if request.tool else _describe_tools(request)
    kwargs = {**result.additional_kwargs, "error_code": code}
    return result.model_copy(update={"content": content, "additional_kwargs": kwargs})


def _describe_tools(request: ToolCallRequest) -> str:
    """Name the tools that the model has, and those whose names are like the one that it called."""
    # Its type is generic, and not written out by LangChain.
    untyped: Any = request
    called, names = request.tool_call["name"], [each.name for each in offered_tools(untyped.runtime)]
    near = get_close_matches(called, sorted(names), n=2)
    others = f", try one of [{', '.join(names)}]" if names else ""
    nearest = f" Nearest in name: {' and '.join(near)}." if near else ""
    return f"Error: {called} is not a valid tool{others}.{nearest}"


def _unknown_arguments(request: ToolCallRequest) -> str:
    """Name the arguments that one of our tools does not take; `""` where it takes all.

    One that asks for nothing, such as `false`, is not counted: models add it from another tool.
    """
    tool = request.tool
    if not isinstance(tool, SpecTool):
        return ""
    takes, given = tool.spec.args.model_fields, request.tool_call["args"]
    unknown = [name for name, value in given.items() if name not in takes and value not in (None, False)]
    return describe_unknown(tool.name, unknown, takes, _unseen_arguments(tool)) if unknown else ""


def _unseen_arguments(tool: BaseTool) -> frozenset[str]:
    """Return the arguments that LangGraph injects, which are not the model's to give or to mend."""
    takes, shown = tool.args_schema, tool.tool_call_schema
    if not (_is_model(takes) and _is_model(shown)):
        return frozenset()
    return frozenset(takes.model_fields.keys() - shown.model_fields.keys())


def _name_ignored(result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
    """Name arguments that one of our tools has passed over."""
    ignored = _unknown_arguments(request) if isinstance(result.content, str) else ""
    return result.model_copy(update={"content": f"{result.content}\n[{ignored}]"}) if ignored else result


def _wrong_arguments(request: ToolCallRequest) -> str:
    """Return which arguments do not fit, without repeating them; `""` where a tool explains that itself."""
    tool = request.tool
    takes = tool.args_schema if tool else None
    if tool is None or tool.handle_validation_error or not _is_model(takes):
        return ""
    try:
        takes.model_validate(request.tool_call["args"])
    except ValidationError as error:
        unseen = _unseen_arguments(tool)
        found = [each for each in error.errors() if unseen.isdisjoint(each["loc"][:1])]
        unknown = describe_unknown(tool.name, request.tool_call["args"], takes.model_fields, unseen)
        text = f"{describe_misfit(tool.name, found)}{'. ' if unknown else ''}{unknown}"
        return truncate(text, _MOST_CHARACTERS) if found else ""
    return ""


def _is_model(schema: object) -> TypeIs[type[BaseModel]]:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _explain(error: Exception, request: ToolCallRequest) -> ToolResult:
    call = request.tool_call
    code: ErrorCode = error.code if isinstance(error, CodedError) else "tool_failed"
    if isinstance(error, CodedError):
        # A tool that chose its words may need more of them.
        reason = truncate(error.text, _MOST_OF_FAILURE)
    else:
        reason = truncate(describe_exception(error), _MOST_CHARACTERS)
    text = f"{call['name']} failed: {reason}. Check the arguments, or reach the goal another way."
    failed = failure_message(call["name"], call["id"] or "", code, text)
    failed.additional_kwargs["error_type"] = type(error).__name__
    return failed


def _came_from_tool(error: BaseException | None) -> bool:
    # A middleware in between may have raised an error of its own from the tool's.
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if _ORIGIN in vars(error):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False
