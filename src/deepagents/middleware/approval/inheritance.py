"""How remembered decisions reach the subagents that `task` starts, and come back from them.

A decision goes from one agent to another only as far as both have the very same tool. One about a tool of a
subagent's own comes back with the subagent's name, `within`, and holds for that subagent alone.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.types import Command

from deepagents.middleware._base import ToolResult
from deepagents.middleware.approval.memory import Record, Records, key_of, within_of
from deepagents.middleware.approval.state import REMEMBERED
from deepagents.middleware.approval.tool_identity import Tools, mark_of, same


@dataclass(frozen=True, slots=True)
class _Handed:
    """What an agent hands to the subagent that one of its calls starts, and what that one learns."""

    thread: str | None
    place: tuple[str, ...]
    to: str
    tools: Tools
    known: Records
    learned: dict[str, Record] = field(default_factory=dict[str, Record])


_HANDED: ContextVar[_Handed | None] = ContextVar("deepagents_remembered", default=None)


@contextmanager
def handing_down(
    state: Mapping[str, Any], tools: Tools, call: Mapping[str, Any]
) -> Generator[dict[str, Record]]:
    """Let the subagent that this call starts know what is remembered; yield what it learns."""
    to = call["args"].get("subagent_type") if call["name"] == "task" else None
    handed = _Handed(*_here(), to, tools, known(state, tools)) if isinstance(to, str) else None
    token = _HANDED.set(handed)
    try:
        yield handed.learned if handed else {}
    finally:
        _HANDED.reset(token)


def known(state: Mapping[str, Any], tools: Tools) -> Records:
    """Return what is remembered in this agent, and in the one that it works for as far as it holds here."""
    own: Records = state.get(REMEMBERED) or {}
    handed = _handed()
    return {**_by_key(_received(handed, tools)), **own} if handed else own


def _received(handed: _Handed, tools: Tools) -> Iterator[Record]:
    for record in handed.known.values():
        within = within_of(record)
        if within and within[0] == handed.to:
            yield {**record, "within": [*within[1:]]}
        elif not within and _holds_for_both(record, handed.tools, tools):
            yield {**record, "tool": mark_of(tools, record["name"])}


def tell(state: Mapping[str, Any], tools: Tools) -> None:
    """Tell the agent that this one works for what was learned here."""
    handed = _handed()
    if handed is not None:
        own: Records = state.get(REMEMBERED) or {}
        handed.learned.update(_by_key(_sent(each, handed, tools) for each in own.values()))


def _sent(record: Record, handed: _Handed, tools: Tools) -> Record:
    within = within_of(record)
    if not within and _holds_for_both(record, tools, handed.tools):
        return {**record, "tool": mark_of(handed.tools, record["name"])}
    return {**record, "within": [handed.to, *within]}


def _holds_for_both(record: Record, tools: Tools, others: Tools) -> bool:
    """Tell whether a decision about one of these tools is about the same one of the others."""
    name: str = record["name"]
    return same(tools.get(name), others.get(name)) and record.get("tool") == mark_of(tools, name)


def _by_key(records: Iterable[Record]) -> dict[str, Record]:
    return {key_of(each): each for each in records}


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
    """Return what was handed to this agent itself; not to one that only runs within such an agent."""
    handed = _HANDED.get()
    if handed is None:
        return None
    thread, place = _here()
    return handed if thread == handed.thread and _is_right_below(place, handed.place) else None


def _is_right_below(place: tuple[str, ...], above: tuple[str, ...]) -> bool:
    """Tell whether a node is one of a graph that this node runs; a graph that keeps threads names no ids."""
    if len(place) != len(above) + 1:
        return False
    return all(own in (theirs, theirs.partition(":")[0]) for own, theirs in zip(place, above, strict=False))


def _here() -> tuple[str | None, tuple[str, ...]]:
    """Return the thread, and the nodes in which this runs, the outermost first."""
    try:
        given: Mapping[str, Any] = get_config().get("configurable", {})
    except RuntimeError:
        return None, ()
    place: str = given.get("checkpoint_ns") or ""
    return given.get("thread_id"), tuple(part for part in place.split("|") if part and not part.isdecimal())
