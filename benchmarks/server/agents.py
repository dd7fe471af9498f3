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
    stone: int, seconds: float, config: RunnableConfig, tool_call_id: Annotated[str, InjectedToolCallId]
) -> str:
    """Lift a stone, which takes some time."""
    configured = config.get("configurable", {})
    with Path(os.environ["LIFTED"]).open("a") as log:
        log.write(f"{configured['run_id']} {tool_call_id} {configured['run_attempt']}\n")
    await asyncio.sleep(seconds)
    return f"lifted {stone}"


def _lift_all(asked: Any) -> Any:
    stones, seconds = next(message.text for message in asked.messages if message.type == "human").split()
    done = sum(message.type == "tool" for message in asked.messages)
    return call("lift", stone=done, seconds=float(seconds)) if done < int(stones) else "All are up."


brief = create_deep_agent(ScriptedModel(always=_be_brief, remembers=False))
talker = create_deep_agent(ScriptedModel(always=_talk, remembers=False), tools=[look_up])
lifter = create_deep_agent(ScriptedModel(always=_lift_all, remembers=False), tools=[lift])
