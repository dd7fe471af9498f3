"""Remember decisions of a person in a thread, and find the one that holds for a call.

A decision is about one agent, one tool and its arguments: of each it keeps the value itself or a pattern that
the person gave, and it matches calls with exactly those arguments. Only such a pattern widens it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END

from deepagents._async import IOCall, sync_and_async
from deepagents._globs import anchor
from deepagents.errors import ConfigError
from deepagents.middleware.approval.path_rules import Call, Specs, find_named_path, link_of, waits
from deepagents.middleware.approval.state import REMEMBERED
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools._tool import failure_message

ANYTHING: Final = "**"
"""The pattern that any value matches."""

Record: TypeAlias = Mapping[str, Any]
Records: TypeAlias = Mapping[str, Record]

# No spaces, quotes or signs of a shell: a pattern must not admit a word that means more than it shows.
_PLAIN: Final = re.compile(r"[\w.,:/@+=-]*", re.ASCII)
_DELIMITER: Final = re.compile("([@=])")
_UP: Final = re.compile(r"(^|[/\\])\.\.([/\\]|$)")
_REJECTED: Final = (
    "A person rejected this call and all that are like it, so it was not run{reason}. Do not make it again."
)


@dataclass(frozen=True, slots=True)
class RememberedDecision:
    """A decision about calls of one tool: arguments that have to be the same, and patterns for others.

    `subagents` names the subagent that it is for, behind those that lead to it; empty for the agent itself.
    """

    key: str
    name: str
    type: Literal["approve", "reject"]
    exact: Mapping[str, Any]
    patterns: Mapping[str, str]
    message: str | None = None
    subagents: tuple[str, ...] = ()


class RememberedDecisions:
    """The decisions that are remembered in a thread of an agent."""

    def __init__(self, agent: Any, config: RunnableConfig) -> None:
        self._agent = agent
        self._config = config

    async def _all(self) -> list[RememberedDecision]:
        """List them, the oldest first."""
        return [_from_record(key, record) for key, record in _records(await self._state()).items()]

    async def _forget(self, key: str) -> None:
        """Forget one, so that calls like it are asked about again.

        Raises:
            ConfigError: for a key that is not there, and while the thread waits for a person or is cut.
        """
        state = await self._state()
        if key not in _records(state):
            raise ConfigError(f"nothing is remembered under {key!r}; all() lists what is")
        if state.next:
            raise ConfigError("the thread waits or was cut; let its run come to an end, then forget")
        await self._call("update_state", {REMEMBERED: {key: None}})
        # LangGraph takes an update for a step of the agent, and would go on from it with the next message.
        if (await self._state()).next:
            await self._call("update_state", None, END)

    async def _state(self) -> Any:
        return await self._call("get_state")

    def _call(self, method: str, *args: Any) -> IOCall[Any]:
        block: Callable[..., Any] = getattr(self._agent, method)
        wait: Callable[..., Any] = getattr(self._agent, f"a{method}")
        return IOCall(lambda: block(self._config, *args), lambda: wait(self._config, *args))

    all, aall = sync_and_async(_all)
    forget, aforget = sync_and_async(_forget)


def _records(state: Any) -> Records:
    return state.values.get(REMEMBERED) or {}


def _from_record(key: str, record: Record) -> RememberedDecision:
    arguments: Mapping[str, Mapping[str, Any]] = record["args"]
    return RememberedDecision(
        key,
        record["name"],
        record["type"],
        {name: value["is"] for name, value in arguments.items() if "is" in value},
        {name: value["like"] for name, value in arguments.items() if "like" in value},
        record.get("message"),
        tuple(record.get("within") or ()),
    )


def records_of(answer: object, asked: Sequence[Call]) -> dict[str, Record]:
    """Return the decisions of an answer that are to be remembered, by their keys."""
    return by_key(_make_record(decision, call) for decision, call in _to_remember(answer, asked))


def by_key(records: Iterator[Record]) -> dict[str, Record]:
    """Key records so that a later decision about the same calls replaces an earlier one."""
    return {_key(each): each for each in records}


def _make_record(decision: Mapping[str, Any], call: Call) -> Record:
    remember = decision["remember"]
    patterns = cast("Mapping[str, Any]", remember if isinstance(remember, Mapping) else {})
    arguments = {
        name: {"is": value} if _are_equal(patterns.get(name, value), value) else {"like": patterns[name]}
        for name, value in call["args"].items()
    }
    reason = {"message": decision["message"]} if decision.get("message") else {}
    return {"name": call["name"], "type": decision["type"], "args": arguments, **reason}


def _key(record: Record) -> str:
    text = _canonical([record["name"], record["args"], record.get("within") or ()])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def find_bad_memory(
    answer: object, asked: Sequence[Call], can_remember: Callable[[str], bool], specs: Specs
) -> str | None:
    """Describe what is wrong with what a person wants to have remembered, if anything is."""
    problems = (
        _describe_memory(decision, call, can_remember, specs)
        for decision, call in _to_remember(answer, asked)
    )
    return next(filter(None, problems), None)


def _to_remember(answer: object, asked: Sequence[Call]) -> Iterator[tuple[Mapping[str, Any], Call]]:
    given: object = cast("Mapping[str, Any]", answer).get("decisions") if isinstance(answer, Mapping) else ()
    decisions = cast("Sequence[Mapping[str, Any]]", given) if isinstance(given, Sequence) else ()
    for decision, call in zip(decisions, asked, strict=False):
        if decision.get("remember") not in (None, False):
            yield decision, call


def _describe_memory(
    decision: Mapping[str, Any], call: Call, can_remember: Callable[[str], bool], specs: Specs
) -> str | None:
    tool, remember = call["name"], decision["remember"]
    if not can_remember(tool):
        return f"decisions about {tool!r} are not remembered here; leave 'remember' out"
    if decision["type"] not in ("approve", "reject"):
        return f"only approve and reject can be remembered, not {decision['type']!r}"
    if remember is True:
        return None
    if not isinstance(remember, Mapping):
        return f"'remember' must be True or a pattern for each argument that may differ, got {remember!r}"
    patterns = cast("Mapping[str, Any]", remember).items()
    return next(filter(None, (_describe_pattern(call, *each, specs) for each in patterns)), None)


def _describe_pattern(call: Call, name: str, pattern: object, specs: Specs) -> str | None:
    tool, arguments, spec = call["name"], call["args"], specs.get(call["name"])
    if name not in arguments:
        return f"'remember' names {name!r}, which is no argument of this call; it has {sorted(arguments)}"
    if _are_equal(pattern, arguments[name]):
        return None
    if not isinstance(pattern, str):
        return f"the pattern for {name!r} must be text, got {pattern!r}"
    if spec and spec.effect == "run" and name in spec.summary_arguments:
        return f"{name!r} of {tool!r} can be remembered only as it is; leave it out of 'remember'"
    try:
        fits = _fits(call, name, {"like": pattern}, specs)
    except (ConfigError, NotImplementedError) as error:
        return str(error)
    mismatch = f"the pattern {pattern!r} does not match {name!r} of this call, {arguments[name]!r}"
    return None if fits else mismatch


def find_decision(
    records: Records, call: Call, allowed: Sequence[str], rules: Rules, state: Any, specs: Specs
) -> Record | None:
    """Return the remembered decision about a call, if there is one; a rejection goes before an approval."""
    found = [
        each
        for each in records.values()
        if each["name"] == call["name"] and each["type"] in allowed and _matches(each, call, specs)
    ]
    rejections = [each for each in found if each["type"] == "reject"]
    approvals = (each for each in found if _lifts_rules(each, call, rules, state, specs))
    return next(iter(rejections), None) or next(approvals, None)


def _matches(record: Record, call: Call, specs: Specs) -> bool:
    wanted, arguments = record["args"], call["args"]
    return (
        not record.get("within")
        and wanted.keys() == arguments.keys()
        and all(_fits(call, name, value, specs) for name, value in wanted.items())
    )


def _fits(call: Call, name: str, wanted: Mapping[str, Any], specs: Specs) -> bool:
    value = call["args"][name]
    if "is" in wanted:
        return _are_equal(wanted["is"], value)
    pattern: str = wanted["like"]
    if pattern == ANYTHING:
        return True
    spec = specs.get(call["name"])
    if spec and name == spec.path_argument:
        path = spec.path_in(call["args"])
        # By the code of permissions, so that a pattern means the same here and there.
        rules = Rules([FilesystemPermission(["read"], [pattern], "deny")])
        return path is not None and rules.decide("read", path) == "deny"
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and not _UP.search(value)
    return bool(plain) and _matches_word(pattern, cast("str", value))


def _matches_word(pattern: str, value: str) -> bool:
    """Match a word; only what the pattern itself names is an `@`, a `=` or a `-` at the beginning.

    These make another thing of a word: `user@host`, `name=value`, `--option`.
    """
    if value.startswith("-") and not pattern.startswith("-"):
        return False
    wanted, given = _DELIMITER.split(pattern), _DELIMITER.split(value)
    return len(wanted) == len(given) and all(map(fnmatchcase, given, wanted))


def _lifts_rules(record: Record, call: Call, rules: Rules, state: Any, specs: Specs) -> bool:
    """Return whether an approval holds although rules make the call wait.

    It does where it was given for that path: the path as it was, or a pattern that begins where the rules
    make all wait. A path that leads elsewhere through a link is asked about each time.
    """
    spec = specs.get(call["name"])
    if spec is None or spec.operation is None or not waits(rules, call, state, specs):
        return True
    named, leads_to = link_of(state, call.get("id"))
    if leads_to is not None and named == find_named_path(call, specs):
        return False
    wanted = record["args"].get(spec.path_argument or "", {"is": None})
    if "is" in wanted:
        return True
    return wanted["like"] != ANYTHING and rules.waits(spec.operation, anchor(wanted["like"]))


def make_rejection(record: Record, call: Call) -> ToolMessage:
    """Answer a call that a remembered decision turns down."""
    reason = f", because: {record['message']}" if record.get("message") else ""
    return failure_message(call["name"], call["id"] or "", "not_run", _REJECTED.format(reason=reason))


def _are_equal(one: object, other: object) -> bool:
    # As JSON: Python takes 1 and True for equal, and a tool does not.
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
