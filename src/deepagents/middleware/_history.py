"""Read a history: who spoke, its open turn, how it ended, media behind results and by digest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from deepagents._paths import BLOBS

BLOB_KEY: Final = "deepagents_blob"
"""Where a block holds a digest instead of the bytes."""
LIMIT_REACHED: Final = "limit_reached"
"""Where an answer of ours holds, in `additional_kwargs`, which limit was reached and what was spent."""
NOTIFICATION: Final = "deepagents_notification"
"""Where a message holds what happened to a task in the background."""
_ADDED_BY_US: Final = ("lc_source", NOTIFICATION, "read_file_media_result")
"""What marks a message that stands for a person's and is none: of a grader, a summary, news, or a film."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")


def blobs_below(root: str) -> str:
    """Return the directory of the files that digests stand for."""
    return f"{root.rstrip('/')}/{BLOBS}"


def blob_of(block: Any) -> str | None:
    """Return the digest that a block holds instead of its bytes; `None` where it holds none."""
    digest = cast("Mapping[Any, Any]", block).get(BLOB_KEY) if isinstance(block, Mapping) else None
    return digest if isinstance(digest, str) and _DIGEST.match(digest) else None


def open_turn(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return what stands after the last message of the model."""
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], AIMessage):
            return messages[at + 1 :]
    return messages


def tells_of_tasks(messages: Sequence[AnyMessage]) -> bool:
    """Return whether the model is about to read what happened to tasks in the background."""
    return any(each.additional_kwargs.get(NOTIFICATION) for each in open_turn(messages))


def is_from_person(message: BaseMessage) -> bool:
    """Return whether a person wrote this, as opposed to what middleware adds in the role of one."""
    marks = message.additional_kwargs
    return isinstance(message, HumanMessage) and not any(marks.get(mark) for mark in _ADDED_BY_US)


def ends_at_limit(messages: Sequence[AnyMessage]) -> bool:
    """Return whether a history ends with the answer of an agent that was stopped."""
    return bool(messages) and LIMIT_REACHED in messages[-1].additional_kwargs


def shows_media(message: AnyMessage) -> bool:
    """Return whether this is the message in which `read_file` shows a film."""
    return isinstance(message, HumanMessage) and bool(message.additional_kwargs.get("read_file_media_result"))


def media_behind_results(messages: list[AnyMessage]) -> list[AnyMessage]:
    """Move messages that show media behind all tool results of their turn, as providers want them."""
    if not any(map(shows_media, messages)):
        return messages
    ordered: list[AnyMessage] = []
    held: list[AnyMessage] = []
    for message in messages:
        if shows_media(message):
            held.append(message)
            continue
        if not isinstance(message, ToolMessage):
            ordered += held
            held = []
        ordered.append(message)
    return ordered + held
