"""The graphs that a real agent server serves for the tests: deep agents whose models follow their orders."""

from __future__ import annotations

import asyncio
from pathlib import Path

from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call
from deepagents.testing.scripted import Asked, ScriptedAnswer


@tool
async def dig_on() -> str:
    """Dig until somebody says stop."""
    await asyncio.Event().wait()
    return "never"


@tool
async def wait_for(path: str, then: str) -> str:
    """Wait until a file is there, and say what to do then."""
    while not Path(path).exists():
        await asyncio.sleep(0.02)
    return then


@tool
def blast() -> str:
    """Use dynamite."""
    return "Boom."


def _dig(asked: Asked) -> ScriptedAnswer:
    last = asked.messages[-1]
    order, _, path = last.text.partition(" once ")
    if path:
        return call("wait_for", path=path, then=order)
    orders = {
        "dig on": call("dig_on"),
        "use dynamite": call("blast"),
        "break": ValueError("the spade broke"),
    }
    is_result = last.type == "tool" and last.name != "wait_for"
    return f"After that: {order}" if is_result else orders.get(order, f"Found: {order}")


def _manage(asked: Asked) -> ScriptedAnswer:
    last = asked.messages[-1]
    if last.text.startswith("[System notification"):
        return f"Heard: {'Found: gold' in last.text}"
    if last.type == "tool":
        return "Sent the digger."
    return AIMessage(
        "", tool_calls=call("start_async_task", description=last.text, subagent_type="digger").tool_calls
    )


digger = create_deep_agent(
    ScriptedModel(always=_dig), tools=[dig_on, wait_for, blast], interrupt_on={"blast": True}, name="digger"
)
boss = create_deep_agent(
    ScriptedModel(always=_manage),
    subagents=[{"name": "digger", "description": "Digs.", "graph_id": "digger"}],
    name="boss",
)
