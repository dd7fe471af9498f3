"""What an agent and all below it have spent: counted live over the tree, and saved with each agent.

An account is open for as long as a run lasts, and for each call of a model or a tool there is one below it.
What a call spent is written to its agent's channel when the call is done. What a call spent that waits for a
person or that failed is saved beside the step. So a run that is taken up again, by this process or another,
goes on counting where it was, and counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.checkpoint.base import CheckpointTuple

from deepagents._async import IOCall as IO
from deepagents._state.deadline import due_in
from deepagents._state.runtime import Step, running_channel, step_under_way, write_channel
from deepagents.limits import Kind
from deepagents.middleware.limits.budget import REFUSED, SECONDS, TOLD, Account, Spent, counts_in

CHANNEL: Final = "_limits_spent"
_UNFINISHED: Final = "_limits_unfinished"
_ANEW: Final = "anew"
_PAST: Final = "past"
_KNOWN: Final = "known"
_CURRENT: ContextVar[Account | None] = ContextVar("deepagents_account", default=None)


def merge_spent(known: Spent, write: Spent) -> Spent:
    """Add what was spent; time is told as a whole, and so is what the model was told of."""
    if write.get(_ANEW):
        return {}
    merged = {**known}
    for key, value in write.items():
        if key == SECONDS:
            merged[key] = max(merged.get(key, 0.0), value)
        elif key == TOLD:
            merged[key] = sorted({*merged.get(key, ()), *value})
        elif key in (REFUSED, _PAST, _KNOWN):
            merged[key] = value
        else:
            merged[key] = merged.get(key, 0) + value
    return merged


class SpentChannel(BinaryOperatorAggregate[Spent]):
    """What an agent has spent, saved as numbers; while it runs, its open account stands beside them."""

    def __init__(self, typ: Any, operator: Any) -> None:
        super().__init__(typ, operator)
        self.account: Account | None = None
        self._opening = Lock()

    def open(self, make: Callable[[], Account], *, anew: bool = False) -> Account:
        """Return the account of this run, made on first use."""
        with self._opening:
            if self.account is None or anew:
                self.account = make()
            return self.account


def spent_channel() -> SpentChannel:
    """Make the channel that holds what an agent has spent."""
    return SpentChannel(dict, merge_spent)


def current() -> Account | None:
    """Return the account that what runs here counts for."""
    return _CURRENT.get()


@contextmanager
def counting_for(call: Account) -> Generator[None]:
    """Let what runs meanwhile count for this account, and know how long it may take."""
    token = _CURRENT.set(call)
    try:
        with due_in(call.seconds_left()):
            yield
    finally:
        _CURRENT.reset(token)


def channel_here() -> SpentChannel | None:
    """Return the running graph's channel of what was spent, if it has one."""
    found = running_channel(CHANNEL)
    return found if isinstance(found, SpentChannel) else None


async def begin(make: Callable[[], Account], *, goes_on: bool) -> dict[str, Any] | None:
    """Open the account of a run that a message starts, and return what the start changes in state."""
    channel = channel_here()
    if channel is None:
        return None
    saved: Spent = cast(Any, channel).value
    if not goes_on:
        channel.open(make, anew=True).begin({})
        return {CHANNEL: {_ANEW: True}} if saved else None
    left, known = await _left_behind(saved.get(_KNOWN, ()))
    past = merge_spent(saved, left)
    channel.open(make, anew=True).begin(past)
    return {CHANNEL: {**left, _PAST: counts_in(past), **({_KNOWN: known} if known else {})}} if past else None


async def opened(make: Callable[[], Account]) -> Account | None:
    """Return the account of this run; a run that is taken up again begins with what it had spent."""
    channel = channel_here()
    if channel is None:
        return None
    account = channel.open(make)
    if not account.is_whole:
        step = step_under_way()
        found = await _read(step, step.place) if step else None
        writes = _Writes.of(found)
        saved = cast("Spent", cast(Any, channel).value)
        past: Spent = saved.get(_PAST) or {}
        account.take_up(_summed([saved, *writes.done]), past, _summed(writes.failed), writes.again)
    return account


def taken_up_call(agent: Account) -> Account:
    """Return the account of the call that this task makes; it goes on where the call was interrupted."""
    step = step_under_way()
    return agent.call(step.task if step else None)


async def note(agent: Account, call: Account, *, again: bool) -> None:
    """Save beside the step what a call has spent that will be made `again`, or that failed."""
    step = step_under_way()
    if step is None:
        return
    saver, place, task = step
    name = str(uuid4())
    writes = [(_UNFINISHED, {"id": name, "task": task if again else None, "spent": agent.under_way(call)})]
    await IO(lambda: saver.put_writes(place, writes, name), lambda: saver.aput_writes(place, writes, name))


def settle(agent: Account, call: Account | None, told: list[Kind] | None = None) -> None:
    """Save what a call spent with the agent that made it."""
    write_channel(CHANNEL, agent.due(call, told or []))


@dataclass
class _Writes:
    """What calls of a step have spent: those that are done, that failed, and that are made again."""

    done: list[Spent] = field(default_factory=list[Spent])
    failed: list[Spent] = field(default_factory=list[Spent])
    again: dict[str, Spent] = field(default_factory=dict[str, Spent])
    names: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, found: CheckpointTuple | None, known: Sequence[str] = ()) -> _Writes:
        pending = (found.pending_writes if found else None) or ()
        made, ended = cls(), {task for task, key, _ in pending if key == CHANNEL}
        made.done = [cast("Spent", value) for _, key, value in pending if key == CHANNEL]
        for _, key, value in pending:
            if key == _UNFINISHED and value["id"] not in known and value["task"] not in ended:
                made._add(value)
        return made

    def _add(self, record: Mapping[str, Any]) -> None:
        self.names.append(record["id"])
        task, spent = record["task"], record["spent"]
        if task is None:
            self.failed.append(spent)
            return
        before = self.again.get(task, {})
        self.again[task] = {key: max(before.get(key, 0), spent.get(key, 0)) for key in {*before, *spent}}


def _summed(parts: Iterable[Spent]) -> Spent:
    total: Spent = {}
    for each in parts:
        total = merge_spent(total, each)
    return total


async def _left_behind(known: Sequence[str]) -> tuple[Spent, list[str]]:
    """Return what calls spent that were not over when this message came, and their names."""
    step = step_under_way()
    if step is None:
        return {}, []
    found = await _read(step, step.place)
    if found is None:
        place: dict[str, Any] = step.place.get("configurable", {})
        latest = {key: place[key] for key in ("thread_id", "checkpoint_ns")}
        found = await _read(step, {"configurable": latest})
        at_input = found is not None and found.metadata.get("source") == "input"
        found = await _before(step, found) if at_input else found
    else:
        while found and found.metadata.get("source") != "input":
            found = await _before(step, found)
        found = await _before(step, found)
    writes = _Writes.of(found, known)
    return _summed([*writes.failed, *writes.again.values()]), writes.names


async def _before(step: Step, found: CheckpointTuple | None) -> CheckpointTuple | None:
    if found is None or found.parent_config is None:
        return None
    return await _read(step, found.parent_config)


async def _read(step: Step, place: RunnableConfig) -> CheckpointTuple | None:
    return await IO(lambda: step.saver.get_tuple(place), lambda: step.saver.aget_tuple(place))
