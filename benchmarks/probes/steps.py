"""CPU milliseconds a step, threads included: a model call and one write, over a run of so many steps."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import time
from importlib import import_module
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.probes import times
from benchmarks.probes.model import WritingModel

WARM_UP = 3
AT_LEAST = 400


def run(agent: Any, model: WritingModel, steps: int, thread: str, *, awaited: bool) -> float:
    """Run so many steps on a new thread, check that each one wrote, and return the milliseconds of one."""
    model.steps = steps
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 10 * steps + 100}
    given = {"messages": [{"role": "user", "content": "Begin."}]}
    start = time.process_time()
    state = asyncio.run(agent.ainvoke(given, config)) if awaited else agent.invoke(given, config)
    spent = time.process_time() - start
    results = [message for message in state["messages"] if message.type == "tool"]
    assert len(results) == steps, f"{len(results)} results of {steps} steps"
    assert all(result.status == "success" for result in results), results[0]
    return spent / steps * 1000


def measure(build: Any, saver: str, steps: int) -> dict[str, float]:
    """Measure one length, after a short run that warms everything up; short runs are repeated."""
    model = WritingModel()
    agent = build(model, checkpointer=InMemorySaver() if saver == "memory" else None)
    awaited = saver == "awaited"
    run(agent, model, WARM_UP, "warm-up", awaited=awaited)
    gc.collect()
    repeats = times(max(1, AT_LEAST // steps))
    spent = [run(agent, model, steps, str(number), awaited=awaited) for number in range(repeats)]
    return {"step": statistics.median(spent)}


if __name__ == "__main__":
    made_by = import_module(f"benchmarks.probes.{sys.argv[1]}").build
    print(json.dumps(measure(made_by, sys.argv[2], int(sys.argv[3]))))
