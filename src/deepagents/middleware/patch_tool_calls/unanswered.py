"""Calls without results: where a history is first wrong, and what is known about each call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, InvalidToolCall, ToolCall, ToolMessage

from deepagents.errors import ErrorCode
from deepagents.middleware._history import shows_media
from deepagents.middleware.patch_tool_calls.outcomes import Fate
from deepagents.tools._tool import failure_message

CallLike = TypeVar("CallLike", ToolCall, InvalidToolCall)

_MALFORMED: Final = "the arguments of this call could not be parsed, so nothing was run. Make the call again."
_NOT_RUN: Final = "this call waited for a person's decision, which never came, so it was not run."
_CANCELLED: Final = (
    "this call was cancelled while it ran; it may or may not have taken effect. Check before you repeat it."
)
_LOST: Final = (
    "no result of this call was recorded: its process ended, or the run was cut off; it may or may not have "
    "taken effect. Check before you repeat it."
)
_LOST_BESIDE_OTHERS: Final = (
    "no result of this call was recorded, though other calls of the same turn have theirs; it was cut off, "
    "and may or may not have taken effect. Check before you repeat it."
)


def first_wrong(messages: Sequence[AnyMessage]) -> int | None:
    """Find the first message whose calls lack results, or the first result that stands where none belongs."""
    waiting: list[str] = []
    turn = 0
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return turn if waiting else at
            waiting.remove(message.tool_call_id)
        elif waiting and not shows_media(message):
            return turn
        elif isinstance(message, AIMessage):
            turn, waiting = at, _ids(message)
    return turn if waiting else None


def repaired_turns(
    messages: Sequence[AnyMessage], held: Collection[str] = (), fates: Mapping[str, Fate] | None = None
) -> list[AnyMessage]:
    """Put one result of each call right behind it, made where there is none, and drop results of no call.

    `held` are the calls of the last turn that a person was to decide about before any of them ran, `fates`
    what this process saw of calls of that turn.
    """
    seen = fates or {}
    answers = _answers(messages)
    last = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AIMessage)), None)
    whole: list[AnyMessage] = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        found = answers.get(at, [])
        whole += [message, *found]
        if isinstance(message, AIMessage):
            whole += _missing(message, found, *((held, seen) if at == last else ((), {})))
    return whole


def malformed_result(call: InvalidToolCall) -> ToolMessage:
    """Answer a call whose arguments could not be parsed."""
    return failure_message(call["name"] or "unknown", call["id"] or "", "invalid_argument", _MALFORMED)


def _missing(
    message: AIMessage, found: Sequence[ToolMessage], held: Collection[str], fates: Mapping[str, Fate]
) -> list[ToolMessage]:
    answered = Counter(answer.tool_call_id for answer in found)
    made: list[ToolMessage] = []
    for call in _unanswered(message.tool_calls, answered):
        call_id = call["id"] or ""
        code, text = _known(call_id in held, fates.get(call_id), beside_others=bool(found))
        made.append(failure_message(call["name"], call["id"] or "", code, text))
    return [*made, *map(malformed_result, _unanswered(message.invalid_tool_calls, answered))]


def _unanswered(calls: Sequence[CallLike], answered: Counter[str]) -> Iterator[CallLike]:
    """Yield the calls that no result is left for, each result being used up by one call."""
    for call in calls:
        call_id = call["id"]
        if call_id is not None and answered[call_id] > 0:
            answered[call_id] -= 1
        elif call_id is not None:
            yield call


def _known(held: bool, fate: Fate | None, *, beside_others: bool) -> tuple[ErrorCode, str]:
    if fate == "cancelled":
        return "cancelled", _CANCELLED
    if fate == "waiting" or (held and not beside_others):
        return "not_run", _NOT_RUN
    return "result_lost", _LOST_BESIDE_OTHERS if beside_others else _LOST


def _answers(messages: Sequence[AnyMessage]) -> Mapping[int, list[ToolMessage]]:
    """Find by place of each message the results of its calls, wherever they stand behind it."""
    waiting: dict[str, list[int]] = {}
    found: defaultdict[int, list[ToolMessage]] = defaultdict(list)
    for at, message in enumerate(messages):
        if isinstance(message, AIMessage):
            asked = Counter(_ids(message))
            waiting.update({call_id: [at] * count for call_id, count in asked.items()})
        elif isinstance(message, ToolMessage) and waiting.get(message.tool_call_id):
            found[waiting[message.tool_call_id].pop()].append(message)
    return found


def _ids(message: AIMessage) -> list[str]:
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    return [call["id"] for call in calls if call["id"] is not None]
