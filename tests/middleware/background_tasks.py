"""An agent with tasks in the background, and a process of it that is killed while one of them works."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call, calls
from deepagents.testing.scripted import Asked

_digs, _has_answered = threading.Event(), threading.Event()
THREAD: Any = {"configurable": {"thread_id": "mine"}}


@tool
def dig_deep() -> str:
    """Dig without an end."""
    _digs.set()
    threading.Event().wait()
    return "never"


@tool
def dig_a_little() -> str:
    """Dig until the main agent has answered."""
    assert _has_answered.wait(120)
    return "a little"


def _work(asked: Asked) -> Any:
    if asked.messages[-1].type == "tool":
        return "Quick."
    return {"deep": call("dig_deep"), "quick": call("dig_a_little")}.get(asked.last, f"Found: {asked.last}")


def make_agent(saver: BaseCheckpointSaver[Any]) -> tuple[Any, ScriptedModel]:
    """Make the agent, and the model that says what it does."""
    model = ScriptedModel()
    digger: Any = {
        "name": "digger",
        "description": "Digs.",
        "system_prompt": "Dig.",
        "model": ScriptedModel(always=_work),
        "tools": [dig_deep, dig_a_little],
        "background": True,
    }
    return create_deep_agent(model, subagents=[digger], checkpointer=saver), model


def die(database: str) -> None:
    with SqliteSaver.from_conn_string(database) as saver:
        agent, model = make_agent(saver)
        orders = ("deep", "quick")
        both = calls(
            *(("start_async_task", {"description": each, "subagent_type": "digger"}) for each in orders)
        )
        model.then(both, "They dig.")
        agent.invoke({"messages": "Dig!"}, THREAD)
        _has_answered.set()
        # The quick one ends without anybody who hears of it.
        while sum(each.name == "deepagents-io" for each in threading.enumerate()) > 1:
            threading.Event().wait(0.02)
        assert _digs.wait(120)
    os.kill(os.getpid(), signal.SIGKILL)


def tell() -> None:
    """Tell how a task stands after a fork of its process, and one whose event loop was closed."""
    agent, model = make_agent(InMemorySaver())
    model.then(call("start_async_task", description="deep", subagent_type="digger"), "It digs.", "It dug.")
    agent.invoke({"messages": "Dig!"}, THREAD)
    child = os.fork()
    if not child:
        _tell_status(agent.invoke({"messages": "And?"}, THREAD))
    os.waitpid(child, 0)
    agent, model = make_agent(InMemorySaver())
    model.then(call("start_async_task", description="deep", subagent_type="digger"), "It digs.", "It dug.")
    loop = asyncio.new_event_loop()
    loop.run_until_complete(agent.ainvoke({"messages": "Dig!"}, THREAD))
    loop.close()
    _tell_status(asyncio.run(agent.ainvoke({"messages": "And?"}, THREAD)))


def _tell_status(state: Any) -> None:
    (record,) = state["async_tasks"].values()
    os.write(1, f"{record['status']}\n".encode())
    # Python would complain of what the closed event loop left.
    os._exit(0)
