"""Repair a history: calls that can be saved and told apart, and one result for each of them.

A result that is missing is made from what is known about its call.
"""

from __future__ import annotations

import json
import operator
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, InvalidToolCall, ToolCall, ToolMessage

from deepagents.errors import ErrorCode
from deepagents.middleware._history import shows_media
from deepagents.tools._tool import failure_message

Outcome: TypeAlias = Literal["cancelled", "waiting"]
"""How a call without a result ended: cancelled while it ran, or it waited for a person and never began."""
NewIds: TypeAlias = Mapping[str | None, list[str]]
"""For each id that several calls had: the ids that they have now, in the order of the calls."""

_ID_OF_BLOCK: Final = {
    "tool_use": "id",
    "tool_call": "id",
    "invalid_tool_call": "id",
    "function_call": "call_id",
}
_LARGEST: Final = 2**64
"""Checkpoints are MessagePack, which has no larger whole numbers (its specification, "int format family")."""
_DEEPEST: Final = 100
"""Levels of lists and dicts that arguments keep; what reads and saves them cannot follow without end."""
_LONGEST_ID: Final = 200
"""Characters of an id, which each request repeats; providers make ids of 20 to 60."""
_TOO_DEEP: Final = "(nested too deep to show)"

CallLike = TypeVar("CallLike", ToolCall, InvalidToolCall)

_MALFORMED: Final = (
    "the arguments of this call could not be parsed, so nothing was run{where}. Make the call again."
)
_QUOTED: Final = 30
"""Characters shown before and behind the place where arguments stop being JSON."""
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
    text = _MALFORMED.format(where=_find_break(call["args"] or ""))
    return failure_message(call["name"] or "unknown", call["id"] or "", "invalid_argument", text)


def _find_break(arguments: str) -> str:
    """Describe where arguments stop being JSON; `""` where they are JSON, of another kind."""
    try:
        json.loads(arguments)
    except json.JSONDecodeError as error:
        before = arguments[max(error.pos - _QUOTED, 0) : error.pos]
        behind = arguments[error.pos : error.pos + _QUOTED]
        ends = f"before {behind!r}" if behind else "where they end"
        return f": {error.msg} at character {error.pos}, after {before!r} and {ends}"
    except (RecursionError, ValueError):
        return ""
    return ""


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
    return [call["id"] for call in _all_calls(message) if call["id"] is not None]


def sanitize(message: AIMessage) -> AIMessage:
    """Return the message with an id of its own for each call, and arguments that can be saved."""
    message, _ = separate_ids(message)
    if not message.tool_calls:
        return message
    parts = {"tool_calls": message.tool_calls, "content": message.content}
    changed = {name: _shallow(part, _DEEPEST) for name, part in parts.items()}
    same = all(changed[name] is part for name, part in parts.items())
    return message if same else message.model_copy(update=changed)


def shares_ids(message: AIMessage) -> bool:
    """Return whether calls of a message have no id, one that is too long, or one that another of them has."""
    ids = [call["id"] for call in _all_calls(message)]
    return not all(map(_is_usable, ids)) or len(set(ids)) < len(ids)


def _is_usable(call_id: str | None) -> bool:
    return call_id is not None and 0 < len(call_id) <= _LONGEST_ID


def separate_ids(message: AIMessage) -> tuple[AIMessage, NewIds]:
    """Make each call of a message have an id of its own; the first call with an id keeps it.

    LangGraph takes a call for answered when any result has its id, and providers refuse a second result. The
    ids stand in blocks of the content too, which some providers send back instead of `tool_calls`.
    """
    if not shares_ids(message):
        return message, {}
    calls = _all_calls(message)
    counts = Counter(call["id"] for call in calls)
    new: defaultdict[str | None, list[str]] = defaultdict(list)
    for old in (call["id"] for call in calls if not _is_usable(call["id"]) or counts[call["id"]] > 1):
        new[old].append(old if _is_usable(old) and not new[old] else f"call_{uuid4().hex}")
    renamed = _with_ids(calls, new)
    valid = len(message.tool_calls)
    update: dict[str, Any] = {"tool_calls": renamed[:valid], "invalid_tool_calls": renamed[valid:]}
    if isinstance(message.content, list):
        update["content"] = _with_ids(message.content, new, _ID_OF_BLOCK)
    return message.model_copy(update=update), new


def _with_ids(items: Iterable[Any], new: NewIds, keys: Mapping[str, str] | None = None) -> list[Any]:
    """Return calls, or blocks of content whose key for the id depends on their type, with the new ids."""
    left = {old: iter(ids) for old, ids in new.items()}
    made: list[Any] = []
    for item in items:
        fields: dict[str, Any] = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        key = "id" if keys is None else keys.get(fields.get("type", ""))
        new_id = next(left.get(fields.get(key), iter(())), None) if key else None
        made.append({**fields, key: new_id} if new_id else item)
    return made


def _all_calls(message: AIMessage) -> Sequence[Any]:
    return [*message.tool_calls, *message.invalid_tool_calls]


def _shallow(value: Any, levels: int) -> Any:
    """Return the same object, or one without what cannot be saved."""
    match value:
        # Before the numbers: `True` matches `int()` too.
        case bool() | str():
            return value
        case int() if not -_LARGEST // 2 <= value < _LARGEST:
            return _as_text(value)
        case dict() | list() if levels == 0:
            return _as_text(value)
        case dict():
            given = cast("dict[Any, Any]", value)
            made = {key: _shallow(each, levels - 1) for key, each in given.items()}
            return given if all(map(operator.is_, made.values(), given.values())) else made
        case list():
            items = cast("list[Any]", value)
            found = [_shallow(each, levels - 1) for each in items]
            return items if all(map(operator.is_, found, items)) else found
        case _:
            return value


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        return _TOO_DEEP
