"""Write what the model reads about a task: its result, and notifications of its end."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AnyMessage, HumanMessage

from deepagents._text import truncate
from deepagents.middleware._history import is_from_person
from deepagents.middleware.async_subagents.client import TaskStatus
from deepagents.middleware.async_subagents.state import (
    EVENT,
    FINISHED,
    UNFINISHED,
    AsyncTask,
    TaskEvent,
    is_plain_id,
)
from deepagents.tools._tool import Content

Block: TypeAlias = dict[str | Any, Any]

_MAX_RESULT: Final = 80_000
_MEDIA: Final = ("image", "image_url", "audio", "input_audio", "video", "file")
_CUT: Final = "\n... [cut; check_async_task returns the whole answer]"
_NO_OUTPUT: Final = "The task completed with no output."
_NOTES: Final = {
    "pending": "It has not begun yet. Do not wait for it: its result will be announced.",
    "waiting": "It waits for a person. Tell the user what it asks, and do not answer it yourself.",
}
_HEADER: Final = "[System notification about an async task. The user did not write this.]"
_NEXT: Final = {
    "success": "The user has not seen this result: use it, and pass on what matters.",
    "error": "Tell the user, or start it again with start_async_task if that may help.",
    "timeout": "It ran out of time. Tell the user, or start a smaller task.",
    "cancelled": "It was stopped; nothing more comes from it.",
    "waiting": "It waits for a person: tell the user what it asks, and do not answer yourself. "
    "update_async_task would drop the question.",
}
_SUPERSEDED: Final = (
    "This is about an earlier run of the task, which your update has replaced. It is not the result of the "
    "update: that will be announced by itself."
)


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
    if found.status == "error":
        shown["error"] = found.error
    if found.status == "waiting":
        shown["interrupts"] = list(found.interrupts)
    if found.status in _NOTES:
        shown["note"] = _NOTES[found.status]
    return to_json(shown)


def announce_status(task: AsyncTask, found: TaskStatus) -> HumanMessage:
    """Make the notification of a task that ended or waits for a person."""
    event: TaskEvent = {
        "task_id": task["task_id"],
        "agent_name": task["agent_name"],
        "status": found.status,
    }
    if found.run_id:
        event["run_id"] = found.run_id
    if found.status == "success":
        return make_notification(event, _result_of(found.values))
    details = {"waiting": list(found.interrupts), "error": {"error": found.error}}.get(found.status)
    return make_notification(event, content_blocks(to_json(details) if details else None))


def make_notification(event: TaskEvent, body: Sequence[Block]) -> HumanMessage:
    """Write a notification: a header, the task inside tags that no text can forge, and what to do next."""
    named = {"task_id": event["task_id"], "agent": event["agent_name"], "status": event["status"]}
    lines = [f"<{tag}>{escape(value)}</{tag}>" for tag, value in named.items()]
    tag = "result" if event["status"] == "success" else "details"
    opening = "\n".join([_HEADER, "<async_task>", *lines, f"<{tag}>"])
    closing = f"</{tag}>\n</async_task>\n{_NEXT.get(event['status'], '')}".rstrip()
    marks = {EVENT: dict(event)}
    if not _has_media(body):
        text = _text_of(body) or (_NO_OUTPUT if event["status"] == "success" else "none")
        inside = escape(truncate(text, _MAX_RESULT, _CUT))
        return HumanMessage(f"{opening}\n{inside}\n{closing}", additional_kwargs=marks)
    blocks: list[Any] = [{"type": "text", "text": opening}]
    for each in body:
        is_text = each["type"] == "text"
        blocks.append(
            {**each, "text": escape(truncate(each["text"], _MAX_RESULT, _CUT))} if is_text else each
        )
    return HumanMessage([*blocks, {"type": "text", "text": closing}], additional_kwargs=marks)


def read_event(message: Any) -> TaskEvent | None:
    """Return the event of a notification; `None` for other messages and for malformed events."""
    given: Any = getattr(message, "additional_kwargs", {}).get(EVENT)
    if not isinstance(given, Mapping):
        return None
    event = dict(cast("Mapping[str, Any]", given))
    if not all(isinstance(event.get(key), str) for key in ("task_id", "agent_name", "status")):
        return None
    is_known = event["status"] in UNFINISHED | FINISHED and is_plain_id(event.get("run_id") or "-")
    return cast(TaskEvent, event) if is_known else None


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
    content = cast("Mapping[str, Any]", last).get("content") if isinstance(last, Mapping) else None
    return content_blocks(content)


def _block_of(given: object) -> Block | None:
    if isinstance(given, str):
        given = {"type": "text", "text": given}
    block = dict(cast("Mapping[Any, Any]", given)) if isinstance(given, Mapping) else dict[Any, Any]()
    if block.get("type") == "text":
        text = block.get("text")
        return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None
    # Compared and not hashed: a server may send anything as a type.
    return block if block.get("type") in _MEDIA else None


def _text_of(blocks: Sequence[Block]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _has_media(blocks: Sequence[Block]) -> bool:
    return any(block["type"] != "text" for block in blocks)
