"""Milliseconds a step of writing, and of editing, beside so many files in state."""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.probes import times
from benchmarks.probes.deep_agent import build
from benchmarks.probes.model import WritingModel, tool_call

STEPS = 60
REPEATS = 3
EDITED = "/files/0.txt"


class EditingModel(WritingModel):
    """Count up in one file, one edit a step."""

    def _next(self, last: BaseMessage) -> AIMessage:
        if last.type == "human":
            self._written = 0
        if self._written >= self.steps:
            return AIMessage("Done.")
        self._written += 1
        old, new = f"count {self._written - 1}.", f"count {self._written}."
        call_id = f"call_{self._written}"
        return tool_call("edit_file", call_id, file_path=EDITED, old_string=old, new_string=new)


def step(model: WritingModel, files: dict[str, Any]) -> float:
    """Return the milliseconds of one step; starting a run, with its files, does not count."""
    agent, steps = build(model), times(STEPS)
    spent: list[float] = []
    for _ in range(times(REPEATS)):
        short, long = _run(agent, model, files, 1), _run(agent, model, files, steps + 1)
        spent.append((long - short) / steps * 1000)
    return statistics.median(spent)


def _run(agent: Any, model: WritingModel, files: dict[str, Any], steps: int) -> float:
    model.steps = steps
    given = {"messages": [{"role": "user", "content": "Begin."}], "files": dict(files)}
    start = time.perf_counter()
    state = agent.invoke(given, {"recursion_limit": 10 * steps + 100})
    spent = time.perf_counter() - start
    results = [message for message in state["messages"] if message.type == "tool"]
    assert len(results) == steps, f"{len(results)} results of {steps} steps"
    assert all(result.status == "success" for result in results), results[0]
    return spent


def _files(count: int) -> dict[str, Any]:
    moment = "2026-01-01T00:00:00+00:00"
    content = "count 0.\n" + "A line of a note, as long as such lines are.\n" * 10
    each = {"content": content, "encoding": "utf-8", "created_at": moment, "modified_at": moment}
    return {f"/files/{number}.txt": dict(each) for number in range(count)}


if __name__ == "__main__":
    given = _files(int(sys.argv[1]))
    print(json.dumps({"write": step(WritingModel(), given), "edit": step(EditingModel(), given)}))
