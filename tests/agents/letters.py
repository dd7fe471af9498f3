"""An agent that sends letters, each of which a person is asked about."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel

THREAD: Any = {"configurable": {"thread_id": "1"}}
APPROVE = {"type": "approve"}


@tool
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def agent_with(model: ScriptedModel, **options: Any) -> Any:
    """Make the agent, with other options where they are given."""
    standing: Any = {"tools": [send], "interrupt_on": {"send": True}, "checkpointer": InMemorySaver()}
    return create_deep_agent(model, **{**standing, **options})


def decide(*decisions: Any) -> Command[Any]:
    """Answer a question with these decisions."""
    return Command(resume={"decisions": list(decisions)})
