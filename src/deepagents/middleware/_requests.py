"""Change a copy of a request of the model, and add to its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage, convert_to_messages
from langchain_core.tools import BaseTool
from langgraph.types import Command

from deepagents.errors import ConfigError
from deepagents.tools import ToolSpec, specs_by_name

Request: TypeAlias = ModelRequest[Any]
Response: TypeAlias = ModelResponse[Any]
ToolResult: TypeAlias = ToolMessage | Command[Any]
TASK_NAME: Final = "task"
DEFERRED: Final = "defer_loading"
"""The key by which LangChain marks a tool that a provider's own search is to load."""


def with_changes(request: Request, **changes: Any) -> Request:
    """Return a copy of a request with other values, as its `override` does."""
    if type(request) is not ModelRequest:
        return request.override(**changes)
    # LangChain's constructor sets up a filter of warnings and formats nine of them: 0.02 ms for each copy.
    copied: Request = object.__new__(ModelRequest)
    copied.__dict__.update(request.__dict__, **changes)
    return copied


def add_section(request: Request, text: str | None) -> Request:
    """Append a part to the system message of a request, if there is one to append."""
    if not text:
        return request
    return with_changes(request, system_message=with_section(request.system_message, text))


def with_section(standing: SystemMessage | None, text: str) -> SystemMessage:
    """Append a part to a system message, after a blank line, keeping the blocks that stand there."""
    content = standing.content if standing else ""
    given = [content] if isinstance(content, str) else content
    # Not `content_blocks`, which asks the translators of all providers, several times in each step.
    blocks: list[Any] = [
        {"type": "text", "text": each} if isinstance(each, str) else each for each in given if each
    ]
    blocks.append({"type": "text", "text": f"\n\n{text}" if blocks else text})
    return SystemMessage(content=blocks)


def check_template(template: object, fields: Sequence[str]) -> str:
    """Return a template for a part of the prompt, once it has all its fields; `None` and "" mean no part.

    Raises:
        TypeError: for what is neither text nor `None`.
        ConfigError: for a text that lacks a field, naming it.
    """
    if template is None or template == "":
        return ""
    if not isinstance(template, str):
        raise TypeError(f"system_prompt must be str or None, got {template!r}")
    if missing := [each for each in fields if each not in template]:
        raise ConfigError(f"system_prompt lacks {', '.join(missing)}; add them, or give None for no prompt")
    return template


def extras_of(tool: Any) -> Mapping[str, Any]:
    """Return the keys of a tool that go to its provider as they are."""
    if isinstance(tool, dict):
        return cast("dict[str, Any]", tool)
    return getattr(tool, "extras", None) or {}


def is_deferred(tool: Any) -> bool:
    """Return whether a provider is to load a tool later, so that the context does not hold it yet."""
    return bool(extras_of(tool).get(DEFERRED))


def without_mark(tool: Any) -> Any:
    """Return a tool that is there from the start, also where it was marked to be loaded later."""
    if DEFERRED not in extras_of(tool):
        return tool
    rest = {key: value for key, value in extras_of(tool).items() if key != DEFERRED}
    return tool.model_copy(update={"extras": rest or None}) if isinstance(tool, BaseTool) else rest


def with_messages(request: Request) -> Request:
    """Return a request whose messages are message objects: layers may add any form that LangChain takes."""
    given = cast("list[Any]", request.messages)
    if all(issubclass(kind, BaseMessage) for kind in set(map(type, given))):
        return request
    return with_changes(request, messages=convert_to_messages(given))


def keeping(
    response: Response, messages: Sequence[BaseMessage], others: Mapping[str, Any] | None = None
) -> Response:
    """Return the response with messages that state is to take for older ones, and further updates."""
    if not messages and not others:
        return response
    taken = {"messages": list(messages)} if messages else {}
    extended: Any = ExtendedModelResponse(response, Command(update={**(others or {}), **taken}))
    return extended


def specs_of_call(request: ToolCallRequest) -> Mapping[str, ToolSpec]:
    """Return the specs of all tools that a call may run: a person may have replaced it."""
    tools = getattr(cast(Any, request).runtime, "tools", None)
    return specs_by_name(tools or [request.tool])


def shows_delegated_work(call: Mapping[str, Any], specs: Mapping[str, ToolSpec]) -> bool:
    """Return whether a result tells of the work of other agents, who may have changed any file."""
    spec = specs.get(call["name"])
    # A caller may delegate by a tool of its own of this name.
    return spec.shows_delegated_work if spec else call["name"] == TASK_NAME
