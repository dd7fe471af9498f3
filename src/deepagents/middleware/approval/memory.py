"""Remember decisions of a person in a thread, and find the one that holds for a call.

A decision is about one agent, one tool and its arguments: of each it keeps the value itself or a pattern that
the person gave, and it matches calls with exactly those arguments. Only such a pattern widens it.

A subagent begins anew with each task, so the agent that calls it keeps its decisions, under its name
(`within`). No decision goes from one agent to another: their tools may differ, though they share a name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.graph import END
from langgraph.types import Command

from deepagents._async import IOCall, sync_and_async
from deepagents._globs import anchor
from deepagents.errors import ConfigError
from deepagents.middleware._requests import TASK_NAME, ToolResult
from deepagents.middleware.approval.files import Call, Specs, find_named_path, link_of, waits
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools._tool import failure_message

REMEMBERED: Final = "remembered_decisions"
"""State key: by its key, each decision that a person had remembered in the thread."""
_ANYTHING: Final = "**"
"""The pattern that any value matches."""

Record: TypeAlias = Mapping[str, Any]
Records: TypeAlias = Mapping[str, Record]
Decisions: TypeAlias = Sequence[Mapping[str, Any]]

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


def records_of(decisions: Decisions, asked: Sequence[Call]) -> dict[str, Record]:
    """Return the decisions of an answer that are to be remembered, by their keys."""
    return _by_key(_make_record(decision, call) for decision, call in _to_remember(decisions, asked))


def _by_key(records: Iterable[Record]) -> dict[str, Record]:
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


def check_memory(
    decisions: Decisions, asked: Sequence[Call], can_remember: Callable[[str], bool], specs: Specs
) -> None:
    """Check what a person wants to have remembered.

    Raises:
        ValueError: for what cannot be.
    """
    for decision, call in _to_remember(decisions, asked):
        tool, remember = call["name"], decision["remember"]
        if not can_remember(tool):
            raise ValueError(f"decisions about {tool!r} are not remembered here; leave 'remember' out")
        if decision["type"] not in ("approve", "reject"):
            raise ValueError(f"only approve and reject can be remembered, not {decision['type']!r}")
        if remember is True:
            continue
        if not isinstance(remember, Mapping):
            raise ValueError(
                f"'remember' must be True or a pattern for each argument that may differ, got {remember!r}"
            )
        for name, pattern in cast("Mapping[str, Any]", remember).items():
            _check_pattern(call, name, pattern, specs)


def _to_remember(decisions: Decisions, asked: Sequence[Call]) -> Iterator[tuple[Mapping[str, Any], Call]]:
    for decision, call in zip(decisions, asked, strict=False):
        if decision.get("remember") not in (None, False):
            yield decision, call


def _check_pattern(call: Call, name: str, pattern: object, specs: Specs) -> None:
    tool, arguments, spec = call["name"], call["args"], specs.get(call["name"])
    if name not in arguments:
        raise ValueError(
            f"'remember' names {name!r}, which is no argument of this call; it has {sorted(arguments)}"
        )
    if _are_equal(pattern, arguments[name]):
        return
    if not isinstance(pattern, str):
        raise ValueError(f"the pattern for {name!r} must be text, got {pattern!r}")
    if spec and spec.effect == "run" and name in spec.summary_arguments:
        raise ValueError(f"{name!r} of {tool!r} can be remembered only as it is; leave it out of 'remember'")
    try:
        fits = _fits(call, name, {"like": pattern}, specs)
    except (ConfigError, NotImplementedError) as error:
        raise ValueError(str(error)) from error
    if not fits:
        raise ValueError(f"the pattern {pattern!r} does not match {name!r} of this call, {arguments[name]!r}")


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
    if pattern == _ANYTHING:
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
    return wanted["like"] != _ANYTHING and rules.waits(spec.operation, anchor(wanted["like"]))


def make_rejection(record: Record, call: Call) -> ToolMessage:
    """Answer a call that a remembered decision turns down."""
    reason = f", because: {record['message']}" if record.get("message") else ""
    return failure_message(call["name"], call["id"] or "", "not_run", _REJECTED.format(reason=reason))


def _are_equal(one: object, other: object) -> bool:
    # As JSON: Python takes 1 and True for equal, and a tool does not.
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


@dataclass(frozen=True, slots=True)
class _TaskDecisions:
    """What is remembered for the subagent that a call of `task` starts, and what it learns."""

    subagent: str
    thread: str | None
    depth: int
    known: Records
    learned: dict[str, Record] = field(default_factory=dict[str, Record])


_TASK: ContextVar[_TaskDecisions | None] = ContextVar("deepagents_task_decisions", default=None)


@contextmanager
def passing_decisions(state: Mapping[str, Any], call: Call) -> Generator[dict[str, Record]]:
    """Let the subagent that this call starts know its decisions; yield what it learns."""
    subagent = call["args"].get("subagent_type") if call["name"] == TASK_NAME else None
    task = None
    if isinstance(subagent, str):
        own = find_decisions(state).values()
        theirs = [each for each in own if (each.get("within") or [None])[0] == subagent]
        known = _by_key({**each, "within": [*each["within"][1:]]} for each in theirs)
        task = _TaskDecisions(subagent, *_running_in(), known)
    # Set to `None` for other tools: an agent that one of them runs must not take over these decisions.
    token = _TASK.set(task)
    try:
        yield task.learned if task else {}
    finally:
        _TASK.reset(token)


def find_decisions(state: Mapping[str, Any]) -> Records:
    """Return what is remembered in this agent, and what the agent that it works for keeps for it."""
    own: Records = state.get(REMEMBERED) or {}
    task = _own_task()
    return {**task.known, **own} if task else own


def report_decisions(state: Mapping[str, Any]) -> None:
    """Pass what was learned here on to the agent that this one works for."""
    own: Records = state.get(REMEMBERED) or {}
    if task := _own_task():
        task.learned.update(
            _by_key({**each, "within": [task.subagent, *(each.get("within") or ())]} for each in own.values())
        )


def with_learned(result: ToolResult, learned: Mapping[str, Record]) -> ToolResult:
    """Return the result so that the agent keeps what was learned while the call ran."""
    if not learned:
        return result
    if isinstance(result, ToolMessage):
        return Command(update={"messages": [result], REMEMBERED: dict(learned)})
    update: object = result.update
    if not isinstance(update, dict):
        return result
    return replace(result, update={**cast("dict[str, Any]", update), REMEMBERED: dict(learned)})


def _own_task() -> _TaskDecisions | None:
    """Return the task that this very agent works on; none for an agent that a tool of the subagent calls."""
    task = _TASK.get()
    if task is None:
        return None
    thread, depth = _running_in()
    return task if (thread, depth) == (task.thread, task.depth + 1) else None


def _running_in() -> tuple[str | None, int]:
    """Return the thread, and how many graphs run one below the other."""
    try:
        given: Mapping[str, Any] = get_config().get("configurable", {})
    except RuntimeError:
        return None, 0
    namespace: str = given.get("checkpoint_ns") or ""
    # LangGraph adds a number where one node calls several graphs; it is no graph.
    parts = [part for part in namespace.split("|") if part and not part.isdecimal()]
    return given.get("thread_id"), len(parts)
