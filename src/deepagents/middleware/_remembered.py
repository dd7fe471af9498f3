"""Decisions that a person had remembered: what they match, and how they reach subagents and come back.

A decision holds for one tool. Of each argument it keeps the value itself or a pattern that the person gave,
and it matches calls with exactly those arguments. Nothing is widened but by such a pattern.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, NotRequired, TypeAlias, cast

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.types import Command

from deepagents._globs import anchor
from deepagents._growing import SNAPSHOT_AFTER, GrowingChannel
from deepagents._state import NOT_SHARED, merge_latest
from deepagents.errors import ConfigError
from deepagents.middleware._base import ToolResult
from deepagents.middleware._waiting import link_of, named_path, operation, path_argument, waits
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools._tool import failure_message

REMEMBERED: Final = "remembered_decisions"
"""State key: by its key, each decision that a person had remembered in the thread."""
ANYTHING: Final = "**"
"""The pattern that any value matches."""

Call: TypeAlias = Mapping[str, Any]
Record: TypeAlias = Mapping[str, Any]
Records: TypeAlias = Mapping[str, Record]

_CAN_BE: Final = ("approve", "reject")
_ONLY_WHOLE: Final = frozenset({("execute", "command")})
_PLAIN: Final = re.compile(r"[\w.,:/@+=-]*", re.ASCII)
_UP: Final = re.compile(r"(^|[/\\])\.\.([/\\]|$)")
_REJECTED: Final = (
    "A person rejected this call and all that are like it, so it was not run{reason}. Do not make it again."
)


class ApprovalState(AgentState[Any]):
    """What approval keeps: what a person put in the place of calls, and decisions to remember."""

    hitl_edited_tool_calls: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    remembered_decisions: NotRequired[
        Annotated[
            dict[str, Any],
            GrowingChannel(merge_latest, snapshot_frequency=SNAPSHOT_AFTER),
            PrivateStateAttr,
            NOT_SHARED,
        ]
    ]


def learned(answer: object, asked: Sequence[Call]) -> dict[str, dict[str, Record]]:
    """Return what an answer adds to the state: the decisions that are to be remembered, by their keys."""
    found = {_key(record): record for each, call in _wishes(answer, asked) if (record := _record(each, call))}
    return {REMEMBERED: found} if found else {}


def wrong_wish(answer: object, asked: Sequence[Call], remembering: Mapping[str, bool]) -> str | None:
    """Say what is wrong with what a person wants to have remembered, if anything is."""
    problems = (_wrong(each, call, remembering) for each, call in _wishes(answer, asked))
    return next(filter(None, problems), None)


def _wishes(answer: object, asked: Sequence[Call]) -> Iterator[tuple[Mapping[str, Any], Call]]:
    given: object = cast("Mapping[str, Any]", answer).get("decisions") if isinstance(answer, Mapping) else ()
    decisions = cast("Sequence[Mapping[str, Any]]", given) if isinstance(given, Sequence) else ()
    for decision, call in zip(decisions, asked, strict=False):
        if decision.get("remember") not in (None, False):
            yield decision, call


def _wrong(decision: Mapping[str, Any], call: Call, remembering: Mapping[str, bool]) -> str | None:
    tool, wish = call["name"], decision["remember"]
    if not remembering.get(tool):
        return f"decisions about {tool!r} are not remembered here; leave 'remember' out"
    if decision["type"] not in _CAN_BE:
        return f"only approve and reject can be remembered, not {decision['type']!r}"
    if wish is True:
        return None
    if not isinstance(wish, Mapping):
        return f"'remember' must be True or a pattern for each argument that may differ, got {wish!r}"
    patterns = cast("Mapping[str, Any]", wish).items()
    return next(filter(None, (_wrong_pattern(call, name, each) for name, each in patterns)), None)


def _wrong_pattern(call: Call, name: str, pattern: object) -> str | None:
    tool, arguments = call["name"], call["args"]
    if name not in arguments:
        return f"'remember' names {name!r}, which is no argument of this call; it has {sorted(arguments)}"
    if _same(pattern, arguments[name]):
        return None
    if not isinstance(pattern, str):
        return f"the pattern for {name!r} must be text, got {pattern!r}"
    if (tool, name) in _ONLY_WHOLE:
        return f"{name!r} of {tool!r} can be remembered only as it is; leave it out of 'remember'"
    if name == path_argument(tool) and pattern != ANYTHING:
        return _wrong_path(pattern)
    return None


def _wrong_path(pattern: str) -> str | None:
    try:
        FilesystemPermission(["read"], [pattern])
    except (ConfigError, NotImplementedError) as error:
        return str(error)
    return None


def _record(decision: Mapping[str, Any], call: Call) -> Record:
    wish = decision["remember"]
    patterns = cast("Mapping[str, Any]", wish if isinstance(wish, Mapping) else {})
    kept = {
        name: {"is": value}
        if name not in patterns or _same(patterns[name], value)
        else {"like": patterns[name]}
        for name, value in call["args"].items()
    }
    reason = {"message": decision["message"]} if decision.get("message") else {}
    return {"name": call["name"], "type": decision["type"], "args": kept, **reason}


def _key(record: Record) -> str:
    told = _canonical([record["name"], record["args"]])
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _same(one: object, other: object) -> bool:
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def decided(
    records: Records, call: Call, allowed: Sequence[str], rules: Rules, state: Mapping[str, Any]
) -> Record | None:
    """Return the remembered decision about a call, if there is one; a rejection goes before an approval.

    An approval holds for a call that the rules make wait only where it was given for that place: its path as
    it was, or a pattern that begins where the rules make all wait.
    """
    found = [each for each in records.values() if each["type"] in allowed and _matches(each, call)]
    found = [each for each in found if each["type"] == "reject" or _lifts(each, call, rules, state)]
    return min(found, key=lambda each: each["type"] != "reject", default=None)


def _matches(record: Record, call: Call) -> bool:
    kept, arguments = record["args"], call["args"]
    if record["name"] != call["name"] or kept.keys() != arguments.keys():
        return False
    return all(_fits(call, name, how, arguments[name]) for name, how in kept.items())


def _fits(call: Call, name: str, how: Mapping[str, Any], value: object) -> bool:
    if "is" in how:
        return _same(how["is"], value)
    pattern: str = how["like"]
    if pattern == ANYTHING:
        return True
    if name == path_argument(call["name"]):
        path = named_path(call)
        return path is not None and _below(pattern, path)
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and not _UP.search(value)
    return bool(plain) and fnmatchcase(cast("str", value), pattern)


def _below(pattern: str, path: str) -> bool:
    return Rules([FilesystemPermission(["read"], [pattern], "deny")]).decide("read", path) == "deny"


def _lifts(record: Record, call: Call, rules: Rules, state: Mapping[str, Any]) -> bool:
    if not waits(rules, call, state):
        return True
    named, led_to = link_of(state, call.get("id"))
    if led_to is not None and named == named_path(call):
        return False
    how = record["args"].get(path_argument(call["name"]) or "", {"is": None})
    if "is" in how:
        return True
    return how["like"] != ANYTHING and rules.waits(operation(call["name"]), anchor(how["like"]))


def rejected(record: Record, call: Call) -> ToolMessage:
    """Answer a call that a remembered decision turns down."""
    reason = f", because: {record['message']}" if record.get("message") else ""
    return failure_message(call["name"], call["id"] or "", "not_run", _REJECTED.format(reason=reason))


@dataclass(frozen=True, slots=True)
class _Handed:
    """What an agent hands to those that run within one of its calls, and what they learn."""

    thread: str | None
    known: Records
    learned: dict[str, Record] = field(default_factory=dict[str, Record])


_HANDED: ContextVar[_Handed | None] = ContextVar("deepagents_remembered", default=None)


@contextmanager
def handing_down(state: Mapping[str, Any]) -> Generator[dict[str, Record]]:
    """Let agents of the same thread that run meanwhile know what is remembered; yield what they learn."""
    handed = _Handed(_thread(), known(state))
    token = _HANDED.set(handed)
    try:
        yield handed.learned
    finally:
        _HANDED.reset(token)


def known(state: Mapping[str, Any]) -> Records:
    """Return what is remembered in this agent, and in the one that it works for."""
    own: Records = state.get(REMEMBERED) or {}
    handed = _handed()
    return {**handed.known, **own} if handed else own


def tell(state: Mapping[str, Any]) -> None:
    """Tell the agent that this one works for what was learned here."""
    handed = _handed()
    if handed is not None:
        handed.learned.update(state.get(REMEMBERED) or {})


def with_learned(result: ToolResult, found: Mapping[str, Record]) -> ToolResult:
    """Return the result so that the agent keeps what was learned while the call ran."""
    if not found:
        return result
    if isinstance(result, ToolMessage):
        return Command(update={"messages": [result], REMEMBERED: dict(found)})
    update: object = result.update
    if not isinstance(update, dict):
        return result
    return replace(result, update={**cast("dict[str, Any]", update), REMEMBERED: dict(found)})


def _handed() -> _Handed | None:
    handed = _HANDED.get()
    return handed if handed is not None and handed.thread == _thread() else None


def _thread() -> str | None:
    try:
        return get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
