"""Remember decisions of a person in a thread, and find the one that holds for a call.

A subagent begins anew with each task, so the agent that calls it keeps its decisions, under its name
(`within`). No decision goes from one agent to another: their tools may differ, though they share a name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END

from deepagents._async import IOCall, setting, sync_and_async
from deepagents._globs import anchor
from deepagents._state.runtime import configurable
from deepagents._values import field, replace, valueclass
from deepagents.decisions import RememberedDecision, are_equal, canonical
from deepagents.errors import ConfigError
from deepagents.middleware.approval.files import Call, Specs, find_named_paths, links_of, waits
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools._tool import failure_message

REMEMBERED: Final = "remembered_decisions"
"""State key: by its key, each decision that a person had remembered in the thread."""
_ANYTHING: Final = "**"
"""The pattern that any value matches."""

Records: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Decisions as they stand in checkpoints, by their keys."""
Answers: TypeAlias = Sequence[Mapping[str, Any]]

# No spaces, quotes or signs of a shell: a pattern must not admit a word that means more than it shows.
_PLAIN: Final = re.compile(r"[\w.,:/@+=-]*", re.ASCII)
_DELIMITER: Final = re.compile("([@=])")
_UP: Final = re.compile(r"(^|[/\\])\.\.([/\\]|$)")
_REJECTED: Final = (
    "A person rejected this call and all that are like it, so it was not run{reason}. Do not make it again."
)


class RememberedDecisions:
    """The decisions that are remembered in a thread of an agent."""

    def __init__(self, agent: Any, config: RunnableConfig) -> None:
        self._agent = agent
        self._config = config

    async def _all(self) -> list[RememberedDecision]:
        """List them, the oldest first."""
        return _read((await self._state()).values.get(REMEMBERED) or {})

    async def _forget(self, key: str) -> None:
        """Forget one, so that calls like it are asked about again.

        Raises:
            ConfigError: for a key that is not there, and while the thread waits for a person or is cut.
        """
        state = await self._state()
        if key not in (state.values.get(REMEMBERED) or {}):
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


def _read(records: Records) -> list[RememberedDecision]:
    decisions: list[RememberedDecision] = []
    for key, record in records.items():
        arguments: Mapping[str, Mapping[str, Any]] = record["args"]
        exact = {name: value["is"] for name, value in arguments.items() if "is" in value}
        patterns = {name: value["like"] for name, value in arguments.items() if "like" in value}
        within = tuple(record.get("within") or ())
        reason = record.get("message")
        decisions.append(
            RememberedDecision(key, record["name"], record["type"], exact, patterns, reason, within)
        )
    return decisions


def _write(decisions: Iterable[RememberedDecision]) -> dict[str, Mapping[str, Any]]:
    """Return the records of decisions; a later one about the same calls has the key of an earlier one."""
    records: dict[str, Mapping[str, Any]] = {}
    for each in decisions:
        exact = {name: {"is": value} for name, value in each.exact.items()}
        arguments = exact | {name: {"like": pattern} for name, pattern in each.patterns.items()}
        within = [*each.subagents]
        text = canonical([each.name, arguments, within])
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        optional = {"message": each.message, "within": within}
        given = {name: value for name, value in optional.items() if value}
        records[key] = {"name": each.name, "type": each.type, "args": arguments, **given}
    return records


def records_of(answers: Answers, asked: Sequence[Call]) -> dict[str, Mapping[str, Any]]:
    """Return the decisions of an answer that are to be remembered, by their keys."""
    return _write(_make_decision(answer, call) for answer, call in _to_remember(answers, asked))


def _make_decision(answer: Mapping[str, Any], call: Call) -> RememberedDecision:
    remember, arguments = answer["remember"], call["args"]
    given = cast("Mapping[str, Any]", remember if isinstance(remember, Mapping) else {})
    patterns = {name: each for name, each in given.items() if not are_equal(each, arguments[name])}
    exact = {name: value for name, value in arguments.items() if name not in patterns}
    return RememberedDecision("", call["name"], answer["type"], exact, patterns, answer.get("message"))


def check_memory(
    answers: Answers, asked: Sequence[Call], can_remember: Callable[[str], bool], specs: Specs
) -> None:
    """Check what a person wants to have remembered.

    Raises:
        ValueError: for what cannot be.
    """
    for answer, call in _to_remember(answers, asked):
        tool, remember = call["name"], answer["remember"]
        if not can_remember(tool):
            raise ValueError(f"decisions about {tool!r} are not remembered here; leave 'remember' out")
        if answer["type"] not in ("approve", "reject"):
            raise ValueError(f"only approve and reject can be remembered, not {answer['type']!r}")
        if remember is True:
            continue
        if not isinstance(remember, Mapping):
            raise ValueError(
                f"'remember' must be True or a pattern for each argument that may differ, got {remember!r}"
            )
        for name, pattern in cast("Mapping[str, Any]", remember).items():
            _check_pattern(call, name, pattern, specs)


def _to_remember(answers: Answers, asked: Sequence[Call]) -> Iterator[tuple[Mapping[str, Any], Call]]:
    for answer, call in zip(answers, asked, strict=False):
        if answer.get("remember") not in (None, False):
            yield answer, call


def _check_pattern(call: Call, name: str, pattern: object, specs: Specs) -> None:
    tool, arguments, spec = call["name"], call["args"], specs.get(call["name"])
    if name not in arguments:
        raise ValueError(
            f"'remember' names {name!r}, which is not an argument of this call; it has {sorted(arguments)}"
        )
    if are_equal(pattern, arguments[name]):
        return
    if not isinstance(pattern, str):
        raise ValueError(f"the pattern for {name!r} must be text, got {pattern!r}")
    if spec and (spec.split or (spec.effect == "run" and name in spec.summary_arguments)):
        raise ValueError(f"{name!r} of {tool!r} can be remembered only as it is; leave it out of 'remember'")
    try:
        fits = _is_like(call, specs, name, pattern, arguments[name])
    except (ConfigError, NotImplementedError) as error:
        raise ValueError(str(error)) from error
    if not fits:
        raise ValueError(f"the pattern {pattern!r} does not match {name!r} of this call, {arguments[name]!r}")


def find_decision(
    decisions: Sequence[RememberedDecision],
    call: Call,
    allowed: Sequence[str],
    rules: Rules,
    state: Any,
    specs: Specs,
) -> RememberedDecision | None:
    """Return the remembered decision about a call, if there is one; a rejection goes before an approval."""
    like = partial(_is_like, call, specs)
    found = [
        each
        for each in decisions
        if not each.subagents and each.type in allowed and each.covers(call["name"], call["args"], like)
    ]
    rejections = (each for each in found if each.type == "reject")
    approvals = (each for each in found if _lifts_rules(each, call, rules, state, specs))
    return next(rejections, None) or next(approvals, None)


def _is_like(call: Call, specs: Specs, name: str, pattern: str, value: Any) -> bool:
    if pattern == _ANYTHING:
        return True
    spec = specs.get(call["name"])
    if spec and name == spec.path_argument:
        path = spec.path_in(call["args"])
        # By the code of permissions, so that a pattern means the same here and there.
        rules = Rules([FilesystemPermission(["read"], [pattern], "deny")])
        return path is not None and rules.decide("read", path) == "deny"
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and not _UP.search(value)
    return bool(plain) and _matches_word(pattern, value)


def _matches_word(pattern: str, value: str) -> bool:
    """Match a word; only what the pattern itself names is an `@`, a `=` or a `-` at the beginning.

    These make another thing of a word: `user@host`, `name=value`, `--option`.
    """
    if value.startswith("-") and not pattern.startswith("-"):
        return False
    wanted, given = _DELIMITER.split(pattern), _DELIMITER.split(value)
    return len(wanted) == len(given) and all(map(fnmatchcase, given, wanted))


def _lifts_rules(decision: RememberedDecision, call: Call, rules: Rules, state: Any, specs: Specs) -> bool:
    """Return whether an approval holds although rules make the call wait.

    It does where it was given for that path: the path as it was, or a pattern that begins where the rules
    make all wait. A path that leads elsewhere through a link is asked about each time.
    """
    spec = specs.get(call["name"])
    if spec is None or spec.operation is None or not waits(rules, call, state, specs):
        return True
    if not links_of(state, call.get("id")).keys().isdisjoint(find_named_paths(call, specs)):
        return False
    pattern = decision.patterns.get(spec.path_argument or "")
    return pattern is None or (pattern != _ANYTHING and rules.waits(spec.operation, anchor(pattern)))


def make_rejection(decision: RememberedDecision, call: Call) -> ToolMessage:
    """Answer a call that a remembered decision turns down."""
    reason = f", because: {decision.message}" if decision.message else ""
    return failure_message(call["name"], call["id"] or "", "not_run", _REJECTED.format(reason=reason))


@valueclass
class _Task:
    """What is remembered for the subagent of a task, and what it learns; `caller` is where it was called."""

    subagent: str
    caller: Sequence[str]
    known: Sequence[RememberedDecision]
    learned: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


_TASK: ContextVar[_Task | None] = ContextVar("deepagents_task_decisions", default=None)


@contextmanager
def remembering_for(subagent: str, state: Mapping[str, Any]) -> Generator[Records]:
    """Let a subagent that runs in this context know its decisions; yield what it learns, for its caller."""
    theirs = (each for each in find_decisions(state) if each.subagents[:1] == (subagent,))
    known = [replace(each, subagents=each.subagents[1:]) for each in theirs]
    task = _Task(subagent, _find_graphs(), known)
    with setting(_TASK, task):
        yield task.learned


def find_decisions(state: Mapping[str, Any]) -> list[RememberedDecision]:
    """Return what is remembered in this agent, and what the agent that it works for keeps for it."""
    task = _own_task()
    return [*_read(state.get(REMEMBERED) or {}), *(task.known if task else ())]


def report_decisions(state: Mapping[str, Any]) -> None:
    """Pass what was learned here on to the agent that this one works for."""
    if task := _own_task():
        own = _read(state.get(REMEMBERED) or {})
        task.learned.update(_write(replace(each, subagents=(task.subagent, *each.subagents)) for each in own))


def _own_task() -> _Task | None:
    """Return the task that this very agent works on; none for an agent that a tool of the subagent calls."""
    task = _TASK.get()
    return task if task and [*task.caller] == _find_graphs()[:-1] else None


def _find_graphs() -> list[str]:
    """Return the graphs that run one below the other, each as the step of it that is being done."""
    namespace: str = configurable().get("checkpoint_ns") or ""
    # LangGraph adds a number where one node calls several graphs; it is not a graph.
    return [part for part in namespace.split("|") if part and not part.isdecimal()]
