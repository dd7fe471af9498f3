"""Pass remembered decisions to the subagents that `task` starts, and keep what they learn for the thread.

A subagent begins anew with each task, so the agent that calls it keeps its decisions, under its name
(`within`). No decision goes from one agent to another: their tools may differ, though they share a name.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.types import Command

from deepagents.middleware._base import ToolResult
from deepagents.middleware.approval.memory import Record, Records, by_key
from deepagents.middleware.approval.path_rules import Call
from deepagents.middleware.approval.state import REMEMBERED


@dataclass(frozen=True, slots=True)
class _TaskDecisions:
    """What is remembered for the subagent that a call of `task` starts, and what it learns."""

    subagent: str
    thread: str | None
    node: tuple[str, ...]
    known: Records
    learned: dict[str, Record] = field(default_factory=dict[str, Record])


_TASK: ContextVar[_TaskDecisions | None] = ContextVar("deepagents_task_decisions", default=None)


@contextmanager
def passing_decisions(state: Mapping[str, Any], call: Call) -> Generator[dict[str, Record]]:
    """Let the subagent that this call starts know its decisions; yield what it learns."""
    subagent = call["args"].get("subagent_type") if call["name"] == "task" else None
    task = None
    if isinstance(subagent, str):
        own = find_decisions(state).values()
        theirs = [each for each in own if (each.get("within") or [None])[0] == subagent]
        known = by_key({**each, "within": [*each["within"][1:]]} for each in theirs)
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
            by_key({**each, "within": [task.subagent, *(each.get("within") or ())]} for each in own.values())
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
    thread, node = _running_in()
    return task if thread == task.thread and _is_right_below(node, task.node) else None


def _is_right_below(node: tuple[str, ...], above: tuple[str, ...]) -> bool:
    """Return whether a node belongs to a graph that the other node runs."""
    if len(node) != len(above) + 1:
        return False
    # A graph that keeps threads of its own has no ids of tasks in its namespace.
    return all(own in (theirs, theirs.partition(":")[0]) for own, theirs in zip(node, above, strict=False))


def _running_in() -> tuple[str | None, tuple[str, ...]]:
    """Return the thread, and the nodes in which this runs, the outermost first."""
    try:
        given: Mapping[str, Any] = get_config().get("configurable", {})
    except RuntimeError:
        return None, ()
    namespace: str = given.get("checkpoint_ns") or ""
    # LangGraph adds a number where one node calls several graphs; it names no node.
    parts = (part for part in namespace.split("|") if part and not part.isdecimal())
    return given.get("thread_id"), tuple(parts)
