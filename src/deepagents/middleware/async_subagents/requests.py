"""Build what a request carries: the messages a task begins with, its parent, context and trace headers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote, unquote

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict
from langsmith.run_helpers import get_current_run_tree
from pydantic import BaseModel

from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.middleware.async_subagents.state import PARENT
from deepagents.tools._tool import Runtime

ShownMessages: TypeAlias = Callable[[Mapping[str, Any]], Sequence[Any]]
"""Returns the messages of a state as the agent's model sees them."""

_METADATA: Final = "langsmith-metadata="
_PREAMBLE: Final = (
    "What stands above is the conversation of the agent that gives you this task. You work on your own, with "
    "your own tools, and only your last message is returned."
)


def first_messages(
    agent: RemoteAgent, task: str, state: Mapping[str, Any], shown: ShownMessages | None
) -> list[dict[str, Any]]:
    """Return the messages that a task begins with: the task, and for a fork the conversation before it."""
    if agent.mode != "fork":
        return [{"role": "user", "content": task}]
    messages: Sequence[Any] = shown(state) if shown else state.get("messages", ())
    history = [to_wire(each) for each in _before_the_call(messages) if isinstance(each, BaseMessage)]
    return [*history, {"role": "user", "content": f"{_PREAMBLE}\n\nTask:\n{task}"}]


def to_wire(message: BaseMessage) -> dict[str, Any]:
    """Return a message as a server takes it, without the artifact of a tool."""
    if isinstance(message, ToolMessage):
        # An artifact may be any Python object, which JSON cannot hold.
        message = message.model_copy(update={"artifact": None})
    found = message_to_dict(message)
    return {**found["data"], "type": found["type"]}


def _before_the_call(messages: Sequence[Any]) -> list[Any]:
    """Return the history up to the turn that starts the task; of that turn only the text."""
    last = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AIMessage)), None)
    if last is None or not messages[last].tool_calls:
        return list(messages)
    text: str = messages[last].text
    return [*messages[:last], *([AIMessage(text)] if text.strip() else [])]


def thread_metadata(agent: RemoteAgent, runtime: Runtime) -> dict[str, str]:
    """Describe the parent on the new thread; only a task on our own server is given our assistant id."""
    parent = _parent_of(runtime)
    metadata = {"subagent_name": agent.name}
    if thread_id := parent.get("thread_id"):
        metadata["parent_thread_id"] = thread_id
    if agent.url is None and agent.notify_parent and "assistant_id" in parent:
        metadata["parent_assistant_id"] = parent["assistant_id"]
    return metadata


def run_options(agent: RemoteAgent, runtime: Runtime) -> dict[str, Any]:
    """Return the options of a run that are not empty.

    A server takes a context or a configuration, never both; a context goes to our own server only.
    """
    options: dict[str, Any] = {"headers": _trace_headers(agent), "webhook": agent.webhook}
    context = plain_context(runtime.context) if agent.url is None else None
    parent = _parent_of(runtime)
    if context:
        options["context"] = context
    elif agent.notify_parent and "thread_id" in parent:
        known = parent if agent.url is None else {"thread_id": parent["thread_id"]}
        options["config"] = {"configurable": {PARENT: known}}
    return {key: value for key, value in options.items() if value}


def plain_context(context: Any) -> dict[str, Any] | None:
    """Return a run's context as JSON can hold it, `None` where it cannot."""
    plain = dict[str, Any]()
    if isinstance(context, BaseModel):
        plain = context.model_dump(mode="json")
    elif is_dataclass(context) and not isinstance(context, type):
        plain = asdict(context)
    elif isinstance(context, Mapping):
        plain = dict(cast("Mapping[str, Any]", context))
    plain.pop(PARENT, None)
    try:
        return json.loads(json.dumps(plain)) or None
    except (TypeError, ValueError):
        return None


def _parent_of(runtime: Runtime) -> dict[str, str]:
    configurable: Mapping[str, Any] = runtime.config.get("configurable") or {}
    ours = {key: configurable.get(key) for key in ("thread_id", "assistant_id")}
    return {key: str(value) for key, value in ours.items() if value}


def _trace_headers(agent: RemoteAgent) -> dict[str, str]:
    """Let a task on our own server appear under our run in a trace, where there is one."""
    tree = get_current_run_tree() if agent.url is None else None
    if tree is None:
        return {}
    traced = tree.to_headers()
    own = [value for key, value in agent.headers.items() if key.lower() == "baggage"]
    items = [item for item in traced.get("baggage", "").split(",") if item]
    # LangSmith nests the task's trace under ours only when the metadata of the baggage asks for it.
    metadata: dict[str, Any] = {"ls_nest_under_parent": True}
    for item in items:
        if item.startswith(_METADATA):
            metadata = {**json.loads(unquote(item.removeprefix(_METADATA))), **metadata}
    others = [item for item in items if not item.startswith(_METADATA)]
    baggage = ",".join([*own, *others, _METADATA + quote(json.dumps(metadata))])
    return {"langsmith-trace": traced.get("langsmith-trace", ""), "baggage": baggage}
