"""Find what a strict provider refuses in a history: results without calls, calls without results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage


def history_faults(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what the strictest of the providers would refuse; an empty list for a valid history.

    System messages stand first. Each call, malformed or not, has an id of its own and is answered exactly
    once, right behind the message that made it, and no result stands anywhere else. Something is there to
    answer.
    """
    faults: list[str] = []
    turn = _PendingCalls()
    body = 0
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            faults += turn.take_result(at, message)
            continue
        faults += turn.find_unanswered()
        turn = _PendingCalls(at, message)
        faults += turn.find_shared_ids()
        if message.type != "system":
            body += 1
        elif body:
            faults.append(f"message {at}: a system message behind others")
    return [*faults, *turn.find_unanswered(), *([] if body else ["there is no message to answer"])]


class _PendingCalls:
    """One message of the model and the calls of it that still wait for a result."""

    def __init__(self, at: int = -1, message: BaseMessage | None = None) -> None:
        self._at = at
        self._all = Counter(_ids(message)) if isinstance(message, AIMessage) else Counter[str]()
        self._open = self._all.copy()

    def take_result(self, at: int, result: ToolMessage) -> list[str]:
        """Take a result, and return what is wrong with it."""
        call_id = result.tool_call_id
        if self._open[call_id] > 0:
            self._open[call_id] -= 1
            return []
        wrong = "a second result for" if call_id in self._all else "a result that does not follow its"
        return [f"message {at}: {wrong} call {call_id!r}"]

    def find_shared_ids(self) -> list[str]:
        """Find the ids that several calls have."""
        return [
            f"message {self._at}: several calls have the id {each!r}"
            for each, n in self._all.items()
            if n > 1
        ]

    def find_unanswered(self) -> list[str]:
        """Find the calls that were left without a result."""
        return [f"message {self._at}: no result for call {call_id!r}" for call_id in (+self._open).elements()]


def _ids(message: AIMessage) -> list[str]:
    ids = [call["id"] for call in message.tool_calls] + [call["id"] for call in message.invalid_tool_calls]
    return [each for each in ids if each is not None]
