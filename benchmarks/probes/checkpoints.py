"""Kilobytes that a checkpointer holds after so many steps, and the power of the steps that they grow as."""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from benchmarks.probes.deep_agent import build
from benchmarks.probes.model import WritingModel, tool_call
from benchmarks.probes.savers import saver
from deepagents import create_deep_agent

EVERY = 10
WINDOW = 12_000
_SURELY_COMPACTED = 50
_ERRAND = "Edit "
_CONTENT = "Count {}.\n" + "A line of a note, as long as such lines are.\n" * 3


class DelegatingModel(WritingModel):
    """Write a small file each step; each tenth step, let a subagent edit the file before."""

    before: Callable[[int], object] = print
    """Called with the number of steps that are done."""
    _done: int = PrivateAttr(default=-1)

    def _next(self, last: BaseMessage) -> AIMessage:
        if last.type == "human" and last.text.startswith(_ERRAND):
            path = last.text.removeprefix(_ERRAND)
            return tool_call("edit_file", "edit", file_path=path, old_string="Count", new_string="Edited")
        if last.type == "tool" and last.name == "edit_file":
            return AIMessage("Edited.")
        self._done += 1
        self.before(self._done)
        number = self._done + 1
        return AIMessage("Done.") if number > self.steps else _step(number)


def _step(number: int) -> AIMessage:
    name = f"call_{number}"
    if number % EVERY:
        return tool_call("write_file", name, file_path=path(number), content=_CONTENT.format(number))
    errand = f"{_ERRAND}{path(number - 1)}"
    return tool_call("task", name, description=errand, subagent_type="general-purpose")


class LookingUpModel(BaseChatModel):
    """Look something up each step, in a window that holds a few dozen results."""

    steps: int = 0
    before: Callable[[int], object] = print
    """Called with the number of steps that are done."""

    @property
    def _llm_type(self) -> str:
        return "looking-up"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _next(self, messages: Sequence[BaseMessage]) -> AIMessage:
        found = re.findall(r"fact number (\d+)", messages[-1].text) if messages[-1].type == "tool" else []
        if not found and messages[0].type != "system":
            return AIMessage("Facts were looked up.")
        done = int(found[-1]) if found else 0
        self.before(done)
        return (
            AIMessage("Done.")
            if done >= self.steps
            else tool_call("look_up", f"call_{done + 1}", topic=str(done + 1))
        )


def look_up(topic: str) -> str:
    """Look something up."""
    return f"This is fact number {topic}." + " It is a fact." * 150


def path(number: int) -> str:
    """Name the file that a step writes."""
    return f"/notes/{number}.md"


def held(checkpointer: Any, weigh: Callable[[str], int], marks: Sequence[int]) -> dict[int, int]:
    """Run as many steps as the last mark says; return the bytes held after as many as each mark says."""
    thread, found = uuid4().hex, dict[int, int]()

    def before(done: int) -> None:
        if done in marks:
            found[done] = weigh(thread)

    model = DelegatingModel(steps=max(marks), before=before)
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 10 * max(marks) + 100}
    given = {"messages": [{"role": "user", "content": "Begin."}]}
    state = build(model, checkpointer=checkpointer).invoke(given, config, durability="sync")
    _check(state, max(marks))
    return found


def held_compacting(checkpointer: Any, weigh: Callable[[str], int], marks: Sequence[int]) -> dict[int, int]:
    """Do the same with a run that is compacted every few steps."""
    thread, found = uuid4().hex, dict[int, int]()

    def before(done: int) -> None:
        if done in marks:
            found[done] = weigh(thread)

    model = LookingUpModel(steps=max(marks), before=before, profile={"max_input_tokens": WINDOW})
    agent: Any = create_deep_agent(model=model, tools=[look_up], checkpointer=checkpointer)
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 10 * max(marks) + 100}
    given = {"messages": [{"role": "user", "content": "Begin."}]}
    state = agent.invoke(given, config, durability="sync")
    assert state["messages"][-1].text == "Done.", state["messages"][-1]
    archived = any(path.startswith("/conversation_history") for path in state.get("files") or ())
    assert archived or max(marks) < _SURELY_COMPACTED, "nothing was compacted"
    return found


def _check(state: Mapping[str, Any], steps: int) -> None:
    results = [message for message in state["messages"] if message.type == "tool"]
    assert len(results) == steps, f"{len(results)} results of {steps} steps"
    assert all(result.status == "success" for result in results), results
    for number in range(1, steps + 1):
        if number % EVERY:
            wanted = "Edited" if number % EVERY == EVERY - 1 and number < steps else "Count"
            assert wanted in str(state["files"][path(number)]["content"]), path(number)


def exponent(of: Mapping[int, float]) -> float:
    """Fit a power of the steps to the bytes: least squares over their logarithms."""
    steps, sizes = map(math.log, of.keys()), map(math.log, of.values())
    return statistics.linear_regression(list(steps), list(sizes)).slope


if __name__ == "__main__":
    run, kind, place, *given = sys.argv[1:]
    with saver(kind, place) as (opened, weigh):
        measured = held_compacting if run == "compacting" else held
        sizes = measured(opened, weigh, [int(each) for each in given])
    kilobytes = {str(steps): size / 1000 for steps, size in sizes.items()}
    print(json.dumps({**kilobytes, "growth": exponent(sizes), "linear": 1}))
