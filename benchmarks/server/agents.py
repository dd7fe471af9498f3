"""The agents that the measurements of the server run: their models follow a script, at no cost."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call

WORDS = 60
OPENED = "opened"
"""The file that lets the runs of a drill end, beside the one that says what was lifted."""
_ANSWER = " ".join(f"word{number}" for number in range(WORDS))


def _be_brief(asked: Any) -> Any:
    return "Thirteen metres."


def _talk(asked: Any) -> Any:
    done = sum(message.type == "tool" for message in asked.messages)
    return call("look_up", topic=f"topic {done}") if done < 2 else _ANSWER


@tool
async def look_up(topic: str) -> str:
    """Look something up."""
    await asyncio.sleep(0.2)
    return f"Nothing is known of {topic}. " * 20


@tool
async def lift(
    stone: int,
    seconds: float,
    is_last: bool,
    config: RunnableConfig,
    tool_call_id: Annotated[str, InjectedToolCallId],
) -> str:
    """Lift a stone, which takes some time; the last one only when all blows have fallen."""
    lifted = Path(os.environ["LIFTED"])
    with lifted.open("a") as log:
        log.write(f"{config.get('configurable', {})['run_id']} {tool_call_id} {os.getpid()}\n")
    await asyncio.sleep(seconds)
    while is_last and not lifted.with_name(OPENED).exists():
        await asyncio.sleep(0.1)
    return f"lifted {stone}"


def _lift_all(asked: Any) -> Any:
    given = next(message.text for message in asked.messages if message.type == "human").split()
    stones, seconds = int(given[0]), float(given[1])
    done = sum(message.type == "tool" for message in asked.messages)
    lifting = call("lift", stone=done, seconds=seconds, is_last=done == stones - 1)
    return lifting if done < stones else "All are up."


brief = create_deep_agent(ScriptedModel(always=_be_brief, remembers=False))
talker = create_deep_agent(ScriptedModel(always=_talk, remembers=False), tools=[look_up])
lifter = create_deep_agent(ScriptedModel(always=_lift_all, remembers=False), tools=[lift])
