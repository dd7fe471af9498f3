"""Python calls a step, counted: unlike time, they are the same on a busy machine."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.probes.model import WritingModel

AVERAGED = 20


class NotingModel(WritingModel):
    """Note something before each step."""

    note: Callable[[], object]

    def _next(self, last: BaseMessage) -> AIMessage:
        self.note()
        return super()._next(last)


def early_and_late(build: Any, steps: int, *, awaited: bool) -> tuple[float, float]:
    """Run so many steps; return the calls of one near the beginning, and of one at the end."""
    calls = 0
    before: list[int] = []

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    agent = build(NotingModel(steps=steps, note=lambda: before.append(calls)), checkpointer=None)
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        _run(agent, steps, awaited=awaited)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    early = before[2 * AVERAGED] - before[AVERAGED]
    late = before[-1] - before[-1 - AVERAGED]
    return early / AVERAGED, late / AVERAGED


def _run(agent: Any, steps: int, *, awaited: bool) -> None:
    given = {"messages": [{"role": "user", "content": "Begin."}]}
    config = {"recursion_limit": 10 * steps + 100}
    if awaited:
        asyncio.run(agent.ainvoke(given, config))
    else:
        agent.invoke(given, config)
