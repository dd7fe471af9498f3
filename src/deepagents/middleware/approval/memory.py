"""Decisions that a person had remembered: how they are made, and what they match.

A decision holds for the very tool it was given for. Of each argument it keeps the value itself or a pattern
that the person gave, and it matches calls with exactly those arguments. Nothing is widened but by such a
pattern.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import ToolMessage

from deepagents._globs import anchor
from deepagents.errors import ConfigError
from deepagents.middleware.approval.path_rules import Specs, link_of, named_path, waits
from deepagents.middleware.approval.state import REMEMBERED
from deepagents.middleware.approval.tool_identity import Tools, mark_of
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools._tool import failure_message

ANYTHING: Final = "**"
"""The pattern that any value matches."""

Call: TypeAlias = Mapping[str, Any]
Record: TypeAlias = Mapping[str, Any]
Records: TypeAlias = Mapping[str, Record]

_CAN_BE: Final = ("approve", "reject")
_PLAIN: Final = re.compile(r"[\w.,:/@+=-]*", re.ASCII)
_NAMED: Final = re.compile("([@=])")
_UP: Final = re.compile(r"(^|[/\\])\.\.([/\\]|$)")
_REJECTED: Final = (
    "A person rejected this call and all that are like it, so it was not run{reason}. Do not make it again."
)


def learned(answer: object, asked: Sequence[Call], tools: Tools) -> dict[str, dict[str, Record]]:
    """Return what an answer adds to the state: the decisions that are to be remembered, by their keys."""
    records = [_record(each, call, tools) for each, call in _wishes(answer, asked)]
    return {REMEMBERED: {key_of(each): each for each in records}} if records else {}


def wrong_wish(
    answer: object, asked: Sequence[Call], remembering: Mapping[str, bool], specs: Specs
) -> str | None:
    """Say what is wrong with what a person wants to have remembered, if anything is."""
    problems = (_wrong(each, call, remembering, specs) for each, call in _wishes(answer, asked))
    return next(filter(None, problems), None)


def _wishes(answer: object, asked: Sequence[Call]) -> Iterator[tuple[Mapping[str, Any], Call]]:
    given: object = cast("Mapping[str, Any]", answer).get("decisions") if isinstance(answer, Mapping) else ()
    decisions = cast("Sequence[Mapping[str, Any]]", given) if isinstance(given, Sequence) else ()
    for decision, call in zip(decisions, asked, strict=False):
        if decision.get("remember") not in (None, False):
            yield decision, call


def _wrong(
    decision: Mapping[str, Any], call: Call, remembering: Mapping[str, bool], specs: Specs
) -> str | None:
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
    return next(filter(None, (_wrong_pattern(call, name, each, specs) for name, each in patterns)), None)


def _wrong_pattern(call: Call, name: str, pattern: object, specs: Specs) -> str | None:
    tool, arguments, spec = call["name"], call["args"], specs.get(call["name"])
    if name not in arguments:
        return f"'remember' names {name!r}, which is no argument of this call; it has {sorted(arguments)}"
    if _same(pattern, arguments[name]):
        return None
    if not isinstance(pattern, str):
        return f"the pattern for {name!r} must be text, got {pattern!r}"
    if spec and spec.effect == "run" and name in spec.summary_arguments:
        return f"{name!r} of {tool!r} can be remembered only as it is; leave it out of 'remember'"
    wrong = _wrong_path(pattern) if spec and name == spec.path_argument and pattern != ANYTHING else None
    if wrong is None and not _fits(call, name, {"like": pattern}, arguments[name], specs):
        return f"the pattern {pattern!r} does not match {name!r} of this call, {arguments[name]!r}"
    return wrong


def _wrong_path(pattern: str) -> str | None:
    try:
        FilesystemPermission(["read"], [pattern])
    except (ConfigError, NotImplementedError) as error:
        return str(error)
    return None


def _record(decision: Mapping[str, Any], call: Call, tools: Tools) -> Record:
    wish = decision["remember"]
    patterns = cast("Mapping[str, Any]", wish if isinstance(wish, Mapping) else {})
    kept = {
        name: {"is": value}
        if name not in patterns or _same(patterns[name], value)
        else {"like": patterns[name]}
        for name, value in call["args"].items()
    }
    reason = {"message": decision["message"]} if decision.get("message") else {}
    tool = mark_of(tools, call["name"])
    return {"name": call["name"], "tool": tool, "type": decision["type"], "args": kept, **reason}


def key_of(record: Record) -> str:
    """Return the key of a decision, the same one for a later decision about the same calls."""
    told = _canonical([record["name"], record["tool"], record["args"], within_of(record)])
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def within_of(record: Record) -> Sequence[str]:
    """Name the subagents whose own tool a decision is about, the outermost first."""
    return record.get("within") or ()


def _same(one: object, other: object) -> bool:
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def decided(
    records: Records,
    call: Call,
    tools: Tools,
    allowed: Sequence[str],
    rules: Rules,
    state: Mapping[str, Any],
    specs: Specs,
) -> Record | None:
    """Return the remembered decision about a call, if there is one; a rejection goes before an approval.

    An approval holds for a call that the rules make wait only where it was given for that place: its path as
    it was, or a pattern that begins where the rules make all wait.
    """
    known = [each for each in records.values() if each["type"] in allowed and _is_about(each, call, tools)]
    found = [each for each in known if _matches(each, call, specs)]
    found = [each for each in found if each["type"] == "reject" or _lifts(each, call, rules, state, specs)]
    return min(found, key=lambda each: each["type"] != "reject", default=None)


def _is_about(record: Record, call: Call, tools: Tools) -> bool:
    """Tell whether a decision is about the tool that a call of this agent runs."""
    if record["name"] != call["name"] or within_of(record) or "tool" not in record:
        return False
    return record["tool"] == mark_of(tools, call["name"])


def _matches(record: Record, call: Call, specs: Specs) -> bool:
    kept, arguments = record["args"], call["args"]
    return kept.keys() == arguments.keys() and all(
        _fits(call, name, how, arguments[name], specs) for name, how in kept.items()
    )


def _fits(call: Call, name: str, how: Mapping[str, Any], value: object, specs: Specs) -> bool:
    if "is" in how:
        return _same(how["is"], value)
    pattern: str = how["like"]
    if pattern == ANYTHING:
        return True
    spec = specs.get(call["name"])
    if spec and name == spec.path_argument:
        path = spec.path_in(call["args"])
        return path is not None and _below(pattern, path)
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and not _UP.search(value)
    return bool(plain) and _like(pattern, cast("str", value))


def _like(pattern: str, value: str) -> bool:
    """Match a word; only what the pattern itself names is an `@`, a `=` or a `-` at the beginning."""
    if value.startswith("-") and not pattern.startswith("-"):
        return False
    wished, given = _NAMED.split(pattern), _NAMED.split(value)
    return len(wished) == len(given) and all(map(fnmatchcase, given, wished))


def _below(pattern: str, path: str) -> bool:
    return Rules([FilesystemPermission(["read"], [pattern], "deny")]).decide("read", path) == "deny"


def _lifts(record: Record, call: Call, rules: Rules, state: Mapping[str, Any], specs: Specs) -> bool:
    spec = specs.get(call["name"])
    if spec is None or spec.operation is None or not waits(rules, call, state, specs):
        return True
    named, led_to = link_of(state, call.get("id"))
    if led_to is not None and named == named_path(call, specs):
        return False
    how = record["args"].get(spec.path_argument or "", {"is": None})
    if "is" in how:
        return True
    return how["like"] != ANYTHING and rules.waits(spec.operation, anchor(how["like"]))


def rejected(record: Record, call: Call) -> ToolMessage:
    """Answer a call that a remembered decision turns down."""
    reason = f", because: {record['message']}" if record.get("message") else ""
    return failure_message(call["name"], call["id"] or "", "not_run", _REJECTED.format(reason=reason))
