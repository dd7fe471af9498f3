"""What a history looks like: its open turn, and media shown behind the tool results of theirs."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage


def open_turn(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return what stands after the last message of the model."""
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], AIMessage):
            return messages[at + 1 :]
    return messages


def shows_media(message: AnyMessage) -> bool:
    """Tell whether this is the message in which `read_file` shows a film."""
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
