"""Find what a person has sent in a thread, and the checkpoint where the thread stood before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from deepagents._values import valueclass
from deepagents.middleware import is_from_person


@valueclass
class Point:
    """A message of the person, by its number among all messages; `before` is where it was not there yet.

    `text` is what was typed. Messages that the agent read at once come and go together: they are one.
    """

    number: int
    text: str
    at: datetime
    before: RunnableConfig


async def find_points(saver: Any, thread: str, messages: Sequence[BaseMessage]) -> list[Point]:
    """Return the messages of the person in a thread that one can go back to, the first first."""
    # Not by the states of the checkpoints: to put each together takes longer, the longer the thread is.
    numbers = {each.id: number for number, each in enumerate(messages, 1) if is_from_person(each)}
    found: dict[int, Point] = {}
    wanted: str | None = None
    async for each in saver.alist({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}):
        if wanted not in (None, _id_of(each.config)):
            # Of a branch that was left.
            continue
        # What was sent while the agent was idle begins a turn by a checkpoint of its own.
        begins = each.metadata.get("source") == "input" and each.parent_config
        sent = [numbers[message.id] for message in _written(each.pending_writes) if message.id in numbers]
        if sent:
            text = "\n".join(_typed_in(messages[number - 1]) for number in sent)
            at = datetime.fromisoformat(each.checkpoint["ts"]).astimezone()
            found[sent[0]] = Point(sent[0], text, at, each.parent_config if begins else each.config)
        wanted = _id_of(each.parent_config) if each.parent_config else ""
    return [found[number] for number in sorted(found)]


def _typed_in(message: BaseMessage) -> str:
    """Return what a person typed: the files that were attached stand behind it, as parts of their own."""
    content: Any = message.content
    return content if isinstance(content, str) else content[0]["text"]


def _written(writes: Any) -> list[BaseMessage]:
    """Return the messages that the step behind a checkpoint has written."""
    values: list[Any] = [value for _, channel, value in writes or () if channel == "messages"]
    listed: list[list[Any]] = [value if isinstance(value, list) else [value] for value in values]
    return [each for part in listed for each in part if isinstance(each, BaseMessage)]


def _id_of(config: RunnableConfig) -> str:
    return config.get("configurable", {})["checkpoint_id"]
