"""What a checkpointer holds grows as the steps do, and not as their square; no clock is read here."""

from __future__ import annotations

import math
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, StateGraph

from benchmarks.probes.checkpoints import held, held_compacting
from benchmarks.probes.savers import saver
from deepagents._state.schema import DeepAgentState
from deepagents.middleware.filesystem.state import Kept
from tests.agents.delegating import text

pytestmark = pytest.mark.slow

LINEAR = 1.2
"""The power of the steps that may be measured. Whole copies at a fixed distance give 1.3 to 1.6."""
COMPACTED = 1.1
"""The same where an archive grows beside the messages. Whole copies at each half more give 1.10 to 1.16."""


def growth(sizes: dict[int, int]) -> float:
    """Return the power of the steps with which the bytes grew, from the first number of steps to the last."""
    first, last = min(sizes), max(sizes)
    return math.log(sizes[last] / sizes[first]) / math.log(last / first)


def test_steps_that_write_and_delegate_are_saved_as_they_come(postgres: str) -> None:
    with saver("postgres", postgres) as (checkpointer, weigh):
        assert growth(held(checkpointer, weigh, [60, 120])) < LINEAR


def test_a_run_that_is_compacted_is_saved_as_it_comes() -> None:
    with saver("sqlite") as (checkpointer, weigh):
        assert growth(held_compacting(checkpointer, weigh, [100, 400])) < COMPACTED


class State(DeepAgentState):
    files: Kept


def saved(steps: int, step: Any, given: Any) -> int:
    """Run a graph that writes what `step` makes of the number of the step; return the bytes that are held."""
    graph: Any = StateGraph(State)
    graph.add_node("work", lambda state: {"messages": [AIMessage("Next.")], **step(len(state["messages"]))})
    graph.set_entry_point("work")
    graph.add_conditional_edges("work", lambda state: "work" if len(state["messages"]) <= steps else END)
    with saver("memory") as (checkpointer, weigh):
        config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": steps + 5}
        graph.compile(checkpointer=checkpointer).invoke(
            {"messages": [HumanMessage("Go")], **given}, config, durability="sync"
        )
        return weigh("1")


def line(number: int) -> str:
    return f"{number}: a line of an archive that only ever grows, as long as such lines are\n"


WAYS: dict[str, tuple[Any, Any]] = {
    "one file that grows": (
        lambda number: {"files": {"/log.md": {"append": line(number)}}},
        {"files": {"/log.md": text("begin\n")}},
    ),
    "messages of many sizes": (
        lambda number: {"messages": [AIMessage("long " * 4_000 if number % 20 == 0 else "short")]},
        {},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_is_saved_as_it_comes(way: str) -> None:
    step, given = WAYS[way]
    assert growth({steps: saved(steps, step, given) for steps in (50, 400)}) < LINEAR


def test_small_edits_do_not_save_large_files_again_and_again() -> None:
    given = {"files": {"/a.md": text("<1>" + "x" * 100_000), "/b.md": text("y" * 100_000)}}

    def edit(number: int) -> Any:
        return {"files": {"/a.md": {"edit": [f"<{number}>", f"<{number + 1}>", False]}}}

    assert saved(200, edit, given) < 2 * saved(50, edit, given)
