"""Python calls a step, counted: unlike time, they are the same on a busy machine."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from importlib import import_module
from typing import Any

from benchmarks.probes.model import WritingModel


def counted(build: Any, steps: int, *, awaited: bool) -> float:
    """Run so many steps, after a short run that warms everything up, and return the calls of one."""
    model = WritingModel()
    agent = build(model, checkpointer=None)
    _run(agent, model, 3, awaited=awaited)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        _run(agent, model, steps, awaited=awaited)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls / steps


def _run(agent: Any, model: WritingModel, steps: int, *, awaited: bool) -> None:
    model.steps = steps
    given = {"messages": [{"role": "user", "content": "Begin."}]}
    config = {"recursion_limit": 10 * steps + 100}
    if awaited:
        asyncio.run(agent.ainvoke(given, config))
    else:
        agent.invoke(given, config)


if __name__ == "__main__":
    made_by = import_module(f"benchmarks.probes.{sys.argv[1]}").build
    lengths = [int(each) for each in sys.argv[3:]]
    print(json.dumps([counted(made_by, each, awaited=sys.argv[2] == "awaited") for each in lengths]))
