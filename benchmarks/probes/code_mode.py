"""What twenty calls of a tool cost: one in each turn, or all in one program.

Tokens and prices are counted as in the long session. The model takes a fifth of a second for an answer, and
the tool a twentieth.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import PrivateAttr

from benchmarks.probes import times
from benchmarks.probes.model import tool_call
from benchmarks.probes.session import PricedModel
from deepagents import create_deep_agent
from deepagents.middleware import CodeModeMiddleware

CALLS = 20
_PROGRAM = f"""
import asyncio, json

orders = await asyncio.gather(*[get_order(number=str(n)) for n in range(1, {CALLS} + 1)])
late = [order["number"] for order in map(json.loads, orders) if order["days"] > 15]
print("late:", late)
"""
_HISTORY = "Packed, weighed, labelled and handed to the carrier, who has signed for it. "


def get_order(number: str) -> str:
    """Return an order: its number, how many days it took, and what happened to it."""
    time.sleep(0.05 * times(20) / 20)
    return json.dumps({"number": int(number), "days": int(number), "history": _HISTORY * 13})


class OrderClerk(PricedModel):
    """Look at twenty orders, and name those that are late."""

    in_program: bool = False
    _requests: int = PrivateAttr(default=0)
    _tokens: int = PrivateAttr(default=0)

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> Any:
        time.sleep(0.2 * times(20) / 20)
        made = super()._generate(messages, *args, **options)
        self._requests += 1
        usage: Any = made.generations[0].message
        self._tokens += usage.usage_metadata["total_tokens"]
        return made

    def _next(self, last: BaseMessage) -> AIMessage:
        if self._done >= self.steps or (self.in_program and self._done):
            return AIMessage("Late are the orders 16 to 20.")
        self._done += 1
        if self.in_program:
            return tool_call("run_code", "call_1", code=_PROGRAM)
        return tool_call("get_order", f"call_{self._done}", number=str(self._done))

    def result(self) -> dict[str, float]:
        """Return requests, tokens and their price in thousands."""
        return {
            "requests": self._requests,
            "tokens": self._tokens / 1000,
            "price": super().result()["price"] * 1000,
        }


def measure(way: str) -> dict[str, float]:
    """Let the clerk look at the orders, and return what it cost."""
    model = OrderClerk(steps=CALLS, in_program=way == "program", profile={"max_input_tokens": 200_000})
    middleware = [CodeModeMiddleware()] if model.in_program else []
    agent: Any = create_deep_agent(model=model, tools=[get_order], middleware=middleware)
    began = time.perf_counter()
    state = agent.invoke({"messages": "Which orders of 1 to 20 are late?"})
    seconds = time.perf_counter() - began
    results = [each for each in state["messages"] if each.type == "tool"]
    assert len(results) == (1 if model.in_program else CALLS)
    assert results[-1].status == "success", results[-1].text
    assert not model.in_program or results[-1].text == "late: [16, 17, 18, 19, 20]"
    return {**model.result(), "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
