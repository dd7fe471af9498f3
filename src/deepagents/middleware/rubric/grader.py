"""Make the agent that grades, read its verdict, and describe its failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.constants import TAG_NOSTREAM

from deepagents._text import describe_exception, truncate
from deepagents.middleware._base import BaseMiddleware, Middleware, Request, Response, inner, keeping
from deepagents.middleware.rubric.types import RUBRIC_GRADER_MESSAGE_SOURCE, GraderResponse

_MAX_STEPS: Final = 60
_MAX_TRIES: Final = 3
_FORM: Final = GraderResponse.__name__
_WANTED: Final = f"Give your verdict now, by calling {_FORM}."
_MAX_LENGTH: Final = 2_000


class VerdictFormMiddleware(BaseMiddleware):
    """Stop a grader that never gives a valid verdict; calls of its other tools do not count."""

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        answers = [each for each in request.state["messages"] if isinstance(each, AIMessage)]
        if sum(map(_gave_no_verdict, answers)) >= _MAX_TRIES:
            raise RuntimeError(f"the grader answered {_MAX_TRIES} times without a verdict that can be used")
        if request.messages and isinstance(request.messages[-1], AIMessage):
            request = request.override(messages=[*request.messages, HumanMessage(_WANTED)])
        response = await inner(handler, request)
        ended = response.structured_response is not None or any(map(_calls_something, response.result))
        return response if ended else keeping(response, (), {"jump_to": "model"})


def _calls_something(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and bool(message.tool_calls)


def _gave_no_verdict(message: AIMessage) -> bool:
    """Return whether an answer tried to give a verdict and failed, or called nothing at all."""
    return not message.tool_calls or any(call["name"] == _FORM for call in message.tool_calls)


def make_grader(
    model: BaseChatModel,
    system_prompt: str,
    tools: Sequence[BaseTool | Callable[..., Any] | dict[str, Any]],
    middleware: Sequence[Middleware],
    context_schema: type[Any] | None,
    state_schema: type[Any] | None,
) -> Runnable[Any, Any]:
    """Compile the agent that grades; LangChain chooses how its answer is structured."""
    graph: Any = create_agent(
        model,
        tools=list(tools) or None,
        system_prompt=system_prompt,
        middleware=[VerdictFormMiddleware(), *middleware],
        response_format=GraderResponse,
        context_schema=context_schema,
        state_schema=state_schema,
        name=RUBRIC_GRADER_MESSAGE_SOURCE,
    )
    return graph


def grader_config(metadata: Mapping[str, Any]) -> RunnableConfig:
    """Return the configuration of a grader: bounded, off the token stream, and no subagent in streams."""
    return {
        "run_name": RUBRIC_GRADER_MESSAGE_SOURCE,
        "tags": [TAG_NOSTREAM],
        "metadata": {**metadata, "lc_agent_name": None},
        "recursion_limit": _MAX_STEPS,
    }


def parse_verdict(result: Any) -> GraderResponse:
    """Return the verdict in a grader's result.

    Raises:
        RuntimeError: when there is none.
        ValidationError: when it contradicts itself.
    """
    answer = cast("dict[str, Any]", result) if isinstance(result, dict) else dict[str, Any]()
    given = answer.get("structured_response")
    if given is None:
        raise RuntimeError("the grader returned no structured_response")
    return given if isinstance(given, GraderResponse) else GraderResponse.model_validate(given)


def model_name(model: Any) -> str:
    """Return the name of a model as its caller would."""
    if isinstance(model, str):
        return model
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__)


def verdict_strategy(model: Any) -> str:
    """Return how the verdict is structured: by the provider, or as the arguments of a tool."""
    profile: Mapping[str, Any] = getattr(model, "profile", None) or {}
    return "provider" if profile.get("structured_output") else "tool"


def describe_failure(error: Exception, metadata: Mapping[str, Any]) -> str:
    """Describe what went wrong with a grading, and with which model."""
    status: object = getattr(error, "status_code", None)
    parts = [truncate(describe_exception(error), _MAX_LENGTH)]
    parts += [f"HTTP status {status}"] if isinstance(status, int) else []
    parts += [f"{key}={value}" for key, value in metadata.items()]
    return f"The grader failed: {'; '.join(parts)}"
