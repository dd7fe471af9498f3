"""Tell again what is in a thread, as it was told when it happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from deepagents.events import Event, PlanChanged, Reasoning, Todo, Token, ToolCalled, ToolFinished
from deepagents.middleware import is_from_person
from deepagents_cli.protocol import PastMessage
from deepagents_cli.session.conversation.attachments import split_files
from deepagents_cli.session.conversation.own_commands import read_past


def replay(messages: Sequence[BaseMessage], todos: Sequence[Any]) -> Iterator[PastMessage | Event]:
    """Yield what persons wrote and what the main agent did, and its plan as it is now."""
    for message in messages:
        if command := read_past(message):
            yield PastMessage("command", command)
            continue
        match message:
            case HumanMessage() if is_from_person(message):
                text, files = split_files(message.text)
                yield PastMessage("person", text, files, _pictures_in(message))
            case AIMessage():
                yield from _answer(message)
            case ToolMessage():
                status = "error" if message.status == "error" else "success"
                yield ToolFinished(message.tool_call_id, message.name or "", status, message.text)
            case _:
                pass
    if todos:
        yield PlanChanged(tuple(Todo(str(each["content"]), str(each["status"])) for each in todos))


def _pictures_in(message: HumanMessage) -> list[tuple[str, str]]:
    images = (each for each in message.content_blocks if each["type"] == "image")
    return [(each["base64"], each.get("mime_type", "")) for each in images if "base64" in each]


def _answer(message: AIMessage) -> Iterator[Event]:
    thought = "".join(
        str(each.get("reasoning", "")) for each in message.content_blocks if each["type"] == "reasoning"
    )
    if thought:
        yield Reasoning(thought)
    if message.text:
        yield Token(message.text)
    for call in message.tool_calls:
        yield ToolCalled(call["name"], call["args"], call["id"] or "")
