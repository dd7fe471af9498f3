"""What an agent elsewhere begins with: its task alone, or the conversation so far as a fork of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict

from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.tools._tool import Runtime

PREAMBLE: Final = (
    "What stands above is the conversation of the agent that gives you this task. You work on your own, with "
    "your own tools, and only your last message is returned."
)


def history_for(
    agent: RemoteAgent,
    task: str,
    runtime: Runtime,
    shown: Callable[[Mapping[str, Any]], Sequence[Any]] | None,
) -> list[dict[str, Any]]:
    """Return the messages that a task begins with, as a server takes them."""
    if agent.mode != "fork":
        return [{"role": "user", "content": task}]
    messages: Sequence[Any] = shown(runtime.state) if shown else runtime.state["messages"]
    told = [_plain(each) for each in _before_the_call(messages) if isinstance(each, BaseMessage)]
    return [*told, {"role": "user", "content": f"{PREAMBLE}\n\nTask:\n{task}"}]


def _before_the_call(messages: Sequence[Any]) -> list[Any]:
    """Return the history up to the turn that starts the task, of which only the words stay."""
    last = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AIMessage)), None)
    if last is None:
        return list(messages)
    asking: AIMessage = messages[last]
    if not asking.tool_calls:
        return list(messages)
    words = [AIMessage(asking.text)] if asking.text.strip() else []
    return [*messages[:last], *words]


def _plain(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        message = message.model_copy(update={"artifact": None})
    told = message_to_dict(message)
    return {**told["data"], "type": told["type"]}
