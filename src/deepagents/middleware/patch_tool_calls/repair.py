"""Repair a history: give each call one result, made from what is known about the call where it has none."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, InvalidToolCall, ToolCall, ToolMessage

from deepagents.errors import ErrorCode
from deepagents.middleware._history import shows_media
from deepagents.middleware.patch_tool_calls.outcomes import Outcome
from deepagents.middleware.patch_tool_calls.sanitize import NewIds, separate_ids, shares_ids
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
_LOST_AMONG_OTHERS: Final = (
    "no result of this call was recorded, though other calls of the same turn have theirs; it was cut off, "
    "and may or may not have taken effect. Check before you repeat it."
)


def find_fault(messages: Sequence[AnyMessage]) -> int | None:
    """Find the first message whose calls lack results or share an id, or the first result out of order."""
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
            if shares_ids(message):
                return at
            turn, waiting = at, _ids(message)
    return turn if waiting else None


def repair_turns(
    messages: Sequence[AnyMessage],
    *,
    held: Collection[str] = (),
    outcomes: Mapping[str, Outcome] | None = None,
) -> list[AnyMessage]:
    """Put one result of each call right behind it, made where there is none, and drop results of no call.

    Args:
        messages: the history from the first fault on.
        held: the calls of a turn that a person was to decide about before any of them ran.
        outcomes: what this process saw of calls of the last turn.
    """
    answers = _answers(messages)
    last = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AIMessage)), None)
    whole: list[AnyMessage] = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AIMessage):
            whole.append(message)
            continue
        is_held = at == last and not {*_ids(message)}.isdisjoint(held)
        message, new_ids = separate_ids(message)
        found = _with_new_ids(answers.get(at, []), new_ids)
        known = outcomes or {} if at == last else {}
        whole += [message, *found, *_missing(message, found, held=is_held, outcomes=known)]
    return whole


def make_malformed_result(call: InvalidToolCall) -> ToolMessage:
    """Answer a call whose arguments could not be parsed."""
    return failure_message(call["name"] or "unknown", call["id"] or "", "invalid_argument", _MALFORMED)


def _missing(
    message: AIMessage, found: Sequence[ToolMessage], *, held: bool, outcomes: Mapping[str, Outcome]
) -> list[ToolMessage]:
    answered = {answer.tool_call_id for answer in found}
    made: list[ToolMessage] = []
    for call in _find_unanswered(message.tool_calls, answered):
        call_id = call["id"] or ""
        code, text = _explain(outcomes.get(call_id), held=held, among_others=bool(found))
        made.append(failure_message(call["name"], call_id, code, text))
    return [*made, *map(make_malformed_result, _find_unanswered(message.invalid_tool_calls, answered))]


def _find_unanswered(calls: Sequence[CallLike], answered: set[str]) -> Iterator[CallLike]:
    return (call for call in calls if call["id"] not in answered)


def _explain(outcome: Outcome | None, *, held: bool, among_others: bool) -> tuple[ErrorCode, str]:
    if outcome == "cancelled":
        return "cancelled", _CANCELLED
    if outcome == "waiting" or (held and not among_others):
        return "not_run", _NOT_RUN
    return "result_lost", _LOST_AMONG_OTHERS if among_others else _LOST


def _answers(messages: Sequence[AnyMessage]) -> Mapping[int, list[ToolMessage]]:
    """Find by the index of each message the results of its calls, wherever they stand behind it."""
    waiting: dict[str, list[int]] = {}
    found: defaultdict[int, list[ToolMessage]] = defaultdict(list)
    for at, message in enumerate(messages):
        if isinstance(message, AIMessage):
            asked = Counter(_ids(message))
            waiting.update({call_id: [at] * count for call_id, count in asked.items()})
        elif isinstance(message, ToolMessage) and waiting.get(message.tool_call_id):
            found[waiting[message.tool_call_id].pop()].append(message)
    return found


def _with_new_ids(answers: Sequence[ToolMessage], new_ids: NewIds) -> list[ToolMessage]:
    left: dict[str | None, Iterator[str]] = {old: iter(ids) for old, ids in new_ids.items()}
    made: list[ToolMessage] = []
    for answer in answers:
        new_id = next(left.get(answer.tool_call_id, iter(())), answer.tool_call_id)
        same = new_id == answer.tool_call_id
        made.append(answer if same else answer.model_copy(update={"tool_call_id": new_id}))
    return made


def _ids(message: AIMessage) -> list[str]:
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    return [call["id"] for call in calls if call["id"] is not None]
