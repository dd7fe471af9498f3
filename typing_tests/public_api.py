"""What a type checker must accept of a user's code; checked by pyright and mypy, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from langchain.agents.middleware import AgentMiddleware, InterruptOnConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel

from deepagents import (
    AsyncSubAgent,
    AsyncSubAgentMiddleware,
    CompiledSubAgent,
    SubAgent,
    create_deep_agent,
)
from deepagents.backends import FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol, ReadResult, WriteResult
from deepagents.errors import ErrorCode
from deepagents.testing import ScriptedModel, call


@dataclass
class User:
    name: str


class Weather(BaseModel):
    degrees: float


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return city


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Quiet(AgentMiddleware[Any, Any]):
    pass


researcher: SubAgent = {
    "name": "researcher",
    "description": "Finds things out.",
    "system_prompt": "Find out.",
    "tools": [weather],
    "model": "anthropic:claude-sonnet-4-6",
}

digger: SubAgent = {
    "name": "digger",
    "description": "Digs in the background.",
    "background": True,
    "update_strategy": "enqueue",
}
tasks = AsyncSubAgentMiddleware(
    async_subagents=[
        AsyncSubAgent(name="far", description="Is on a server.", graph_id="far", url="https://example.com"),
        CompiledSubAgent(name="here", description="Is here.", runnable=create_deep_agent()),
    ]
)
assert_type(tasks.close(), None)

agent = create_deep_agent(
    "anthropic:claude-sonnet-4-6",
    [weather, add],
    system_prompt="Be kind.",
    middleware=[Quiet()],
    subagents=[
        researcher,
        digger,
        CompiledSubAgent(name="done", description="Is done.", runnable=create_deep_agent()),
    ],
    backend=FilesystemBackend(root_dir="."),
    interrupt_on={
        "write_file": True,
        "edit_file": InterruptOnConfig(allowed_decisions=["approve", "reject"]),
    },
    response_format=Weather,
    context_schema=User,
    checkpointer=InMemorySaver(),
)
assert_type(agent, CompiledStateGraph[Any, User, Any, Any])

scripted = create_deep_agent(ScriptedModel(call("ls", path="/"), "done"), backend=StateBackend())

disk: BackendProtocol = LocalShellBackend(root_dir=".", timeout=5)
assert_type(disk.read("/notes.md"), ReadResult)


async def written() -> ErrorCode | None:
    result = await disk.awrite("/notes.md", "text")
    assert_type(result, WriteResult)
    return result.code
