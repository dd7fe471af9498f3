"""Write what a task's server reads, and what the model reads about a task: its result, and notifications."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langsmith.run_helpers import get_current_run_tree
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from deepagents._text import truncate
from deepagents.middleware._history import NOTIFICATION, is_from_person, open_turn
from deepagents.middleware.async_subagents.spec import (
    FINISHED,
    PARENT,
    UNFINISHED,
    AsyncAgent,
    AsyncTask,
    TaskEvent,
    TaskStatus,
    as_mapping,
)
from deepagents.tools._tool import Content, Runtime

Input: TypeAlias = BaseMessage | dict[str, Any]
"""A message of a run that begins."""
Block: TypeAlias = dict[str | Any, Any]
ShownMessages: TypeAlias = Callable[[Mapping[str, Any]], Sequence[Any]]
"""Returns the messages of a state as the agent's model sees them."""

_MAX_ERROR: Final = 4_000
_MAX_RESULT: Final = 80_000
_MEDIA: Final = ("image", "image_url", "audio", "input_audio", "video", "file")
_CUT: Final = "\n... [cut; check_async_task returns the whole answer]"
_NO_OUTPUT: Final = "The task completed with no output."
_LEFT: Final = (
    "The process that worked on it has ended before it did. What it had done is kept: update_async_task lets "
    "it go on from there."
)
_HEADER: Final = "[System notification about an async task. The user did not write this.]"
_NEXT: Final = {
    "pending": "It has not begun yet. Do not wait for it: its result will be announced.",
    "success": "The user has not seen this result: use it, and pass on what matters.",
    "error": "Tell the user, or start it again with start_async_task if that may help.",
    "timeout": "It ran out of time. Tell the user, or start a smaller task.",
    "cancelled": "It was stopped; nothing more comes from it.",
    "interrupted": _LEFT,
    "waiting": "It waits for a person: tell the user what it asks, and do not answer yourself. "
    "update_async_task would drop the question.",
}
_NOTED: Final = ("pending", "waiting", "interrupted")
_SUPERSEDED: Final = (
    "This is about an earlier run of the task, which your update has replaced. It is not the result of the "
    "update: that will be announced by itself."
)
_SETTLED: Final = "The task does not wait for an answer any more: whatever you answer, nothing comes of it."
_PREAMBLE: Final = (
    "What stands above is the conversation of the agent that gives you this task. You work on your own, with "
    "your own tools, and only your last message is returned."
)


def first_messages(
    agent: AsyncAgent, task: str, state: Mapping[str, Any], shown: ShownMessages | None
) -> list[Input]:
    """Return the messages that a task begins with: the task, and for a fork the conversation before it."""
    if agent.mode != "fork":
        return [{"role": "user", "content": task}]
    messages: Sequence[Any] = shown(state) if shown else state.get("messages", ())
    history = [each for each in _before_the_call(messages) if isinstance(each, BaseMessage)]
    return [*history, {"role": "user", "content": f"{_PREAMBLE}\n\nTask:\n{task}"}]


def _before_the_call(messages: Sequence[Any]) -> list[Any]:
    """Return the history up to the turn that starts the task; of that turn only the text."""
    at = len(messages) - len(open_turn(messages)) - 1
    if at < 0 or not messages[at].tool_calls:
        return list(messages)
    text: str = messages[at].text
    return [*messages[:at], *([AIMessage(text)] if text.strip() else [])]


def thread_metadata(agent: AsyncAgent, runtime: Runtime) -> dict[str, str]:
    """Describe the parent on the new thread; only a task on our own server is given our assistant id."""
    parent = _parent_of(runtime)
    metadata = {"subagent_name": agent.name}
    if thread_id := parent.get("thread_id"):
        metadata["parent_thread_id"] = thread_id
    if agent.url is None and agent.notify_parent and "assistant_id" in parent:
        metadata["parent_assistant_id"] = parent["assistant_id"]
    return metadata


def run_options(agent: AsyncAgent, runtime: Runtime) -> dict[str, Any]:
    """Return the options of a run that are not empty.

    A server takes a context or a configuration, never both; a context goes to our own server only. In this
    process the context is the same object.
    """
    if agent.make:
        return {"context": runtime.context}
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
    try:
        plain = as_mapping(to_jsonable_python(context))
    except ValueError:
        return None
    return {key: value for key, value in plain.items() if key != PARENT} or None


def _parent_of(runtime: Runtime) -> dict[str, str]:
    configurable: Mapping[str, Any] = runtime.config.get("configurable") or {}
    ours = {key: configurable.get(key) for key in ("thread_id", "assistant_id")}
    return {key: str(value) for key, value in ours.items() if value}


def _trace_headers(agent: AsyncAgent) -> dict[str, str]:
    """Let a task on our own server appear under our run in a trace, where there is one."""
    tree = get_current_run_tree() if agent.url is None else None
    if tree is None:
        return {}
    # LangSmith nests the task's trace under ours only when the metadata asks for it.
    given = cast("dict[str, Any]", cast("Any", tree).extra or {})
    extra = {**given, "metadata": {**tree.metadata, "ls_nest_under_parent": True}}
    traced = tree.model_copy(update={"extra": extra}).to_headers()
    own = [value for key, value in agent.headers.items() if key.lower() == "baggage"]
    return {**traced, "baggage": ",".join([*own, traced["baggage"]])}


def to_json(value: Any) -> str:
    """Write a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def escape(text: str) -> str:
    """Escape text of others so that it cannot pose as a tag."""
    return html.escape(text, quote=False)


def content_blocks(content: object) -> list[Block]:
    """Return the text and media of a message's content, without reasoning and tool calls."""
    given = cast("list[object]", content) if isinstance(content, list) else [content]
    return [block for each in given if (block := _block_of(each))]


def render_status(task: AsyncTask, found: TaskStatus) -> Content:
    """Describe the status of a task as JSON; media of its result follow as blocks."""
    shown: dict[str, Any] = {"status": found.status, "thread_id": task["thread_id"]}
    if found.status == "success":
        blocks = _result_of(found.values)
        if _has_media(blocks):
            return [{"type": "text", "text": to_json(shown)}, *blocks]
        shown["result"] = _text_of(blocks) or _NO_OUTPUT
    note = {"note": _NEXT[found.status]} if found.status in _NOTED else {}
    return to_json({**shown, **_details_of(found), **note})


def _details_of(found: TaskStatus) -> dict[str, Any]:
    details = {
        "error": {"error": truncate(found.error, _MAX_ERROR)},
        "waiting": {"interrupts": list(found.interrupts)},
    }
    return details.get(found.status, {})


def announce_status(task: AsyncTask, found: TaskStatus) -> HumanMessage:
    """Make the notification of a task that ended or waits for a person."""
    event: TaskEvent = {
        "task_id": task["task_id"],
        "agent_name": task["agent_name"],
        "status": found.status,
    }
    if found.run_id:
        event["run_id"] = found.run_id
    details = _details_of(found)
    body = content_blocks(to_json(details)) if details else _result_of(found.values)
    return make_notification(event, body)


def as_question(task: AsyncTask, found: TaskStatus) -> Any:
    """Return what a task asks first; a mapping also says which task asks."""
    value = found.interrupts[0]["value"] if found.interrupts else _SETTLED
    if not isinstance(value, Mapping):
        return value
    asks = {"task_id": task["task_id"], "agent_name": task["agent_name"]}
    return {**cast("Mapping[str, Any]", value), "async_task": asks}


def make_notification(event: TaskEvent, body: Sequence[Block]) -> HumanMessage:
    """Write a notification: a header, the task inside tags that no text can forge, and what to do next."""
    named = {"task_id": event["task_id"], "agent": event["agent_name"], "status": event["status"]}
    lines = [f"<{tag}>{escape(value)}</{tag}>" for tag, value in named.items()]
    tag = "result" if event["status"] == "success" else "details"
    opening = "\n".join([_HEADER, "<async_task>", *lines, f"<{tag}>"])
    closing = f"</{tag}>\n</async_task>\n{_NEXT.get(event['status'], '')}".rstrip()
    marks = {NOTIFICATION: dict(event)}
    inside = [_quote(each) for each in body] or [
        _text_block(_NO_OUTPUT if event["status"] == "success" else "none")
    ]
    blocks: list[Any] = [_text_block(opening), *inside, _text_block(closing)]
    return HumanMessage(blocks if _has_media(blocks) else _text_of(blocks), additional_kwargs=marks)


def _text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def _quote(block: Block) -> Block:
    """Escape and cut a text, so that it cannot pose as a tag; media stay as they are."""
    if block["type"] != "text":
        return block
    return _text_block(escape(truncate(block["text"], _MAX_RESULT, _CUT)))


@cache
def _reader() -> TypeAdapter[TaskEvent]:
    return TypeAdapter(TaskEvent)


def read_event(message: Any) -> TaskEvent | None:
    """Return the event of a notification; `None` for other messages and for malformed events."""
    try:
        event = _reader().validate_python(getattr(message, "additional_kwargs", {}).get(NOTIFICATION))
    except ValidationError:
        return None
    return event if event["status"] in UNFINISHED | FINISHED else None


def find_announced_questions(messages: Sequence[AnyMessage]) -> frozenset[str]:
    """Find the tasks whose questions were announced since a person last wrote."""
    found: set[str] = set()
    for message in reversed(messages):
        event = read_event(message)
        if event and event["status"] == "waiting":
            found.add(event["task_id"])
        elif is_from_person(message):
            break
    return frozenset(found)


def mark_superseded(message: HumanMessage) -> HumanMessage:
    """Return a notification that first says it is about a run that an update replaced; the id stays."""
    content: Any = message.content
    marked: Any = f"{_SUPERSEDED}\n\n{content}"
    if isinstance(content, list):
        marked = [{"type": "text", "text": _SUPERSEDED}, *cast("list[Any]", content)]
    return message.model_copy(update={"content": marked})


def _result_of(values: Mapping[str, Any]) -> list[Block]:
    messages: Any = values.get("messages")
    last: Any = cast("list[Any]", messages)[-1] if isinstance(messages, list) and messages else None
    return content_blocks(as_mapping(last).get("content"))


def _block_of(given: object) -> Block | None:
    block = dict(as_mapping({"type": "text", "text": given} if isinstance(given, str) else given))
    if block.get("type") == "text":
        text = block.get("text")
        return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None
    # Compared and not hashed: a server may send anything as a type.
    return block if block.get("type") in _MEDIA else None


def _text_of(blocks: Sequence[Block]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _has_media(blocks: Sequence[Block]) -> bool:
    return any(block["type"] != "text" for block in blocks)
