"""Show the last messages of a thread that is opened again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from deepagents_cli.output import call_line
from deepagents_cli.protocol import PastMessage
from deepagents_cli.terminal import clean

_MOST: Final = 40
"""Messages."""
_LONGEST: Final = 20_000
"""Characters of one of them."""


def past_messages(messages: Sequence[BaseMessage]) -> list[PastMessage]:
    """Return the last texts and calls, for people."""
    return [each for message in messages[-_MOST:] for each in _shown(message)]


def _shown(message: BaseMessage) -> Iterator[PastMessage]:
    text = clean(message.text[:_LONGEST]).strip()
    if isinstance(message, HumanMessage):
        # What the library adds for the model is marked with where it came from.
        if "lc_source" not in message.additional_kwargs:
            yield {"who": "person", "text": text}
    elif isinstance(message, AIMessage):
        if text:
            yield {"who": "agent", "text": text}
        for call in message.tool_calls:
            yield {"who": "tool", "text": call_line(call["name"], call["args"])}
