"""CPU milliseconds to create an agent: the first of its process, a further one, and one that is also run."""

from __future__ import annotations

import json
import statistics
import sys
import time
from importlib import import_module
from typing import Any

from benchmarks.probes import times
from benchmarks.probes.model import WritingModel

REPEATS = 7


def created(build: Any, workers: int) -> dict[str, float]:
    """Measure creation alone."""
    model = WritingModel()
    spent: list[float] = []
    for _ in range(1 + times(REPEATS)):
        start = time.process_time()
        build(model, workers)
        spent.append((time.process_time() - start) * 1000)
    return {"first": spent[0], "next": statistics.median(spent[1:])}


def used(build: Any, workers: int) -> dict[str, float]:
    """Measure creation and the first run, in which a subagent runs an errand where there is one."""
    model = WritingModel(worker="worker-0") if workers else WritingModel(steps=1)
    start = time.process_time()
    state = build(model, workers).invoke({"messages": [{"role": "user", "content": "Begin."}]})
    spent = (time.process_time() - start) * 1000
    answers = [message for message in state["messages"] if message.type == "tool"]
    assert len(answers) == 1, answers
    assert answers[0].status == "success", answers
    return {"used": spent}


if __name__ == "__main__":
    measure = {"created": created, "used": used}[sys.argv[2]]
    print(json.dumps(measure(import_module(f"benchmarks.probes.{sys.argv[1]}").build, int(sys.argv[3]))))
