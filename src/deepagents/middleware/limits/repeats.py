"""How often in a row an agent made the same call; read from its messages, so that it outlives a process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile, islice

from langchain_core.messages import AIMessage, AnyMessage, ToolCall

from deepagents.middleware._history import said_by_a_person


def row_of(messages: Sequence[AnyMessage], most: int, call_id: str | None = None) -> int:
    """Count the equal calls that end with this one, or with the last; no further than `most` and one."""
    calls = _backwards(messages)
    if call_id is not None:
        calls = dropwhile(lambda call: call["id"] != call_id, calls)
    last = next(calls, None)
    if last is None:
        return 0
    count = 1
    for call in islice(calls, most):
        if call["name"] != last["name"] or call["args"] != last["args"]:
            break
        count += 1
    return count


def _backwards(messages: Sequence[AnyMessage]) -> Iterator[ToolCall]:
    """Return the calls since a person last spoke, the latest first."""
    for message in reversed(messages):
        if said_by_a_person(message):
            return
        if isinstance(message, AIMessage):
            yield from reversed(message.tool_calls)
