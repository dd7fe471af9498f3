"""The message that tells an agent, between its own steps, how a task elsewhere has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import AnyMessage, HumanMessage

from deepagents.middleware._history import said_by_a_person
from deepagents.middleware.async_subagents.answers import NO_OUTPUT, Block, Said, as_json, escaped, said_in
from deepagents.middleware.async_subagents.state import (
    EVENT,
    FINISHED,
    UNFINISHED,
    AsyncTask,
    TaskEvent,
    is_plain_id,
)
from deepagents.middleware.async_subagents.status import Standing

_HEADER: Final = "[System notification about an async task. The user did not write this.]"
_NEXT: Final = {
    "success": "The user has not seen this result: use it, and pass on what matters.",
    "error": "Tell the user, or start it again with start_async_task if that may help.",
    "timeout": "It ran out of time. Tell the user, or start a smaller task.",
    "cancelled": "It was stopped; nothing more comes from it.",
    "waiting": "It waits for a person: tell the user what it asks, and do not answer yourself. "
    "update_async_task would drop the question.",
}
SUPERSEDED: Final = (
    "This is about an earlier run of the task, which your update has replaced. It is not the result of the "
    "update: that will be announced by itself."
)


def announcement(task: AsyncTask, standing: Standing) -> HumanMessage:
    """Tell what became of a task."""
    match standing.status:
        case "success":
            body = said_in(standing.values)
        case "waiting":
            body = _text(as_json(list(standing.interrupts)))
        case "error":
            body = _text(as_json({"error": standing.error}))
        case _:
            body = Said(())
    return notification(event_of(task, standing), body)


def _text(text: str) -> Said:
    return Said(({"type": "text", "text": text},))


def event_of(task: AsyncTask, standing: Standing) -> TaskEvent:
    """Name what happened, for programs."""
    event: TaskEvent = {
        "task_id": task["task_id"],
        "agent_name": task["agent_name"],
        "status": standing.status,
    }
    return {**event, "run_id": standing.run_id} if standing.run_id else event


def notification(event: TaskEvent, body: Said, advice: str | None = None) -> HumanMessage:
    """Write the message: a header, the task between tags that nothing inside can forge, what to do next."""
    named = {"task_id": event["task_id"], "agent": event["agent_name"], "status": event["status"]}
    lines = [f"<{tag}>{escaped(value, None)}</{tag}>" for tag, value in named.items()]
    tag = "result" if event["status"] == "success" else "details"
    opening = "\n".join([_HEADER, "<async_task>", *lines, f"<{tag}>"])
    closing = f"</{tag}>\n</async_task>\n{advice or _NEXT.get(event['status'], '')}".rstrip()
    inside: list[Block] = [
        _fenced(block) for block in body.blocks if block["type"] != "text" or body.has_media
    ]
    if not body.has_media:
        text = body.text or (NO_OUTPUT if event["status"] == "success" else "none")
        return _message(f"{opening}\n{escaped(text)}\n{closing}", event)
    blocks: list[Any] = [{"type": "text", "text": opening}, *inside, {"type": "text", "text": closing}]
    return _message(cast("list[str | dict[Any, Any]]", blocks), event)


def _fenced(block: Block) -> Block:
    return {"type": "text", "text": escaped(block["text"])} if block["type"] == "text" else block


def _message(content: str | list[str | dict[Any, Any]], event: TaskEvent) -> HumanMessage:
    return HumanMessage(content, additional_kwargs={EVENT: dict(event)})


def event_in(message: Any) -> TaskEvent | None:
    """Return what a message notifies of, if it is a notification that holds what one does."""
    given: Any = getattr(message, "additional_kwargs", {}).get(EVENT)
    if not isinstance(given, Mapping):
        return None
    event = dict(cast("Mapping[str, Any]", given))
    told = [event.get(key) for key in ("task_id", "agent_name", "status")]
    texts = all(isinstance(each, str) for each in told)
    run_is_named = is_plain_id(event.get("run_id") or "-")
    known = texts and event["status"] in UNFINISHED | FINISHED
    return cast(TaskEvent, event) if known and run_is_named else None


def questions_told(messages: Sequence[AnyMessage]) -> frozenset[str]:
    """Name the tasks whose questions have been announced since a person last spoke."""
    told: set[str] = set()
    for message in reversed(messages):
        event = event_in(message)
        if event and event["status"] == "waiting":
            told.add(event["task_id"])
        elif said_by_a_person(message):
            break
    return frozenset(told)


def about_earlier_run(message: HumanMessage) -> HumanMessage:
    """Say first that a notification is of a run which an update has replaced; the message keeps its id."""
    content: Any = message.content
    told: Any = f"{SUPERSEDED}\n\n{content}"
    if isinstance(content, list):
        told = [{"type": "text", "text": SUPERSEDED}, *cast("list[Any]", content)]
    return message.model_copy(update={"content": told})
