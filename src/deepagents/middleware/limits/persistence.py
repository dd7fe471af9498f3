"""Save what each agent has spent, so that a run that is taken up again goes on counting where it was.

A budget is open for as long as a run lasts, and for each call of a model or a tool there is one below it.
What a call spent is written to its agent's channel when the call is done. What a call spent that waits for a
person or that failed is saved with the writes of the step. So nothing is forgotten or counted twice,
whichever process goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from threading import Lock
from typing import Any, Final, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.checkpoint.base import CheckpointTuple

from deepagents._async import IOCall, due_in, setting
from deepagents._state.runtime import Step, running_channel, step_under_way, write_channel
from deepagents._values import field, recordclass
from deepagents.limits import Kind
from deepagents.middleware.limits.budget import REFUSED, SECONDS, Budget, Spent, counts_in

CHANNEL: Final = "_limits_spent"
WARNED: Final = "told"
"""Which kinds the model was warned of; saved threads hold it under this name."""
_UNFINISHED: Final = "_limits_unfinished"
_ANEW: Final = "anew"
_PAST: Final = "past"
_KNOWN: Final = "known"
_CURRENT: ContextVar[Budget | None] = ContextVar("deepagents_budget", default=None)


def merge_spent(known: Spent, write: Spent) -> Spent:
    """Add what was spent; time is written as a whole, and so is what the model was warned of."""
    if write.get(_ANEW):
        return {}
    merged = {**known}
    for key, value in write.items():
        if key == SECONDS:
            merged[key] = max(merged.get(key, 0.0), value)
        elif key == WARNED:
            merged[key] = sorted({*merged.get(key, ()), *value})
        elif key in (REFUSED, _PAST, _KNOWN):
            merged[key] = value
        else:
            merged[key] = merged.get(key, 0) + value
    return merged


class SpentChannel(BinaryOperatorAggregate[Spent]):
    """What an agent has spent, saved as numbers; while it runs, the channel also holds its open budget."""

    def __init__(self, typ: Any, operator: Any) -> None:
        super().__init__(typ, operator)
        self.budget: Budget | None = None
        self._opening = Lock()

    def open(self, make: Callable[[], Budget], *, anew: bool = False) -> Budget:
        """Return the budget of this run, made on first use."""
        # Parallel calls of a step open the budget at once, and must share one.
        with self._opening:
            if self.budget is None or anew:
                self.budget = make()
            return self.budget


def make_spent_channel() -> SpentChannel:
    """Make the channel that holds what an agent has spent."""
    return SpentChannel(dict, merge_spent)


def running_spent() -> SpentChannel | None:
    """Return the running graph's channel of what was spent, if it has one."""
    found = running_channel(CHANNEL)
    return found if isinstance(found, SpentChannel) else None


def current_budget() -> Budget | None:
    """Return the budget that what runs now counts for."""
    return _CURRENT.get()


@contextmanager
def spending_from(call: Budget) -> Generator[None]:
    """Let what runs meanwhile count for this budget, and know how long it may take."""
    with setting(_CURRENT, call), due_in(call.seconds_left()):
        yield


async def begin_run(make: Callable[[], Budget], *, goes_on: bool) -> dict[str, Any] | None:
    """Open the budget of a run that a message starts, and return what the start changes in state."""
    channel = running_spent()
    if channel is None:
        return None
    saved: Spent = cast(Any, channel).value
    if not goes_on:
        channel.open(make, anew=True).begin({})
        return {CHANNEL: {_ANEW: True}} if saved else None
    left, known = await _read_left_over(saved.get(_KNOWN, ()))
    past = merge_spent(saved, left)
    channel.open(make, anew=True).begin(past)
    return {CHANNEL: {**left, _PAST: counts_in(past), **({_KNOWN: known} if known else {})}} if past else None


async def open_budget(make: Callable[[], Budget]) -> Budget | None:
    """Return the budget of this run; a run that is taken up again begins with what it had spent."""
    channel = running_spent()
    if channel is None:
        return None
    budget = channel.open(make)
    if not budget.is_restored:
        step = step_under_way()
        writes = _Writes.of(await _read(step, step.place) if step else None)
        saved = cast("Spent", cast(Any, channel).value)
        past: Spent = saved.get(_PAST) or {}
        budget.resume(_sum([saved, *writes.done]), past, _sum(writes.failed), writes.again)
    return budget


def open_background() -> Budget | None:
    """Return the budget of work that outlasts the call which starts it; `None` where nothing is counted."""
    channel = running_spent()
    agent = channel.budget if channel else None
    return agent.for_background() if agent else current_budget()


def save_background(work: Budget) -> None:
    """Save with the running agent what work in the background has spent since the last time."""
    channel = running_spent()
    agent = channel.budget if channel else None
    if agent and (new := agent.adopt(work)):
        write_channel(CHANNEL, new)


def open_call(agent: Budget) -> Budget:
    """Return the budget of the call that this task makes; it goes on where the call was interrupted."""
    step = step_under_way()
    return agent.for_call(step.task if step else None)


async def save_unfinished(agent: Budget, call: Budget, *, again: bool) -> None:
    """Save with the step what a call has spent that will be made `again`, or that failed."""
    step = step_under_way()
    if step is None:
        return
    saver, place, task = step
    # A task id of its own: savers key writes by task and index, and would keep one of two.
    name = str(uuid4())
    record = {"id": name, "task": task if again else None, "spent": agent.sum_unfinished(call)}
    # A task that raises writes no channel, but its pending writes stay with the checkpoint.
    writes = [(_UNFINISHED, record)]
    await IOCall(
        lambda: saver.put_writes(place, writes, name), lambda: saver.aput_writes(place, writes, name)
    )


def save_call(agent: Budget, call: Budget | None, warned: Sequence[Kind] = ()) -> None:
    """Save what a call spent with the agent that made it."""
    write_channel(CHANNEL, {**agent.to_save(call), **({WARNED: [*warned]} if warned else {})})


@recordclass
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
        # A record holds all that was spent since the call began, so later ones replace and do not add.
        before = self.again.get(task, {})
        self.again[task] = {key: max(before.get(key, 0), spent.get(key, 0)) for key in {*before, *spent}}


def _sum(parts: Iterable[Spent]) -> Spent:
    return reduce(merge_spent, parts, dict[str, Any]())


async def _read_left_over(known: Sequence[str]) -> tuple[Spent, list[str]]:
    """Return what calls spent that were not over when this message came, and the names of their records."""
    step = step_under_way()
    if step is None:
        return {}, []
    found = await _read(step, step.place)
    if found is None:
        # The checkpoint of the input is not saved yet, or only now: look from the latest that is.
        place: dict[str, Any] = step.place.get("configurable", {})
        found = await _read(
            step, {"configurable": {key: place[key] for key in ("thread_id", "checkpoint_ns")}}
        )
        if found is not None and found.metadata.get("source") == "input":
            found = await _parent(step, found)
    else:
        while found and found.metadata.get("source") != "input":
            found = await _parent(step, found)
        found = await _parent(step, found)
    writes = _Writes.of(found, known)
    return _sum([*writes.failed, *writes.again.values()]), writes.names


async def _parent(step: Step, found: CheckpointTuple | None) -> CheckpointTuple | None:
    if found is None or found.parent_config is None:
        return None
    return await _read(step, found.parent_config)


async def _read(step: Step, place: RunnableConfig) -> CheckpointTuple | None:
    return await IOCall(lambda: step.saver.get_tuple(place), lambda: step.saver.aget_tuple(place))
