"""The schemas of an agent can be had as JSON, whatever it was created with."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from deepagents import DeepAgentState, FilesystemPermission, Limits, create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.middleware.skills import SkillsMiddleware
from deepagents.testing import ScriptedModel
from deepagents.undo import FileHistory


class Verdict(BaseModel):
    good: bool


class Counted(DeepAgentState):
    count: int


def look(place: str) -> str:
    """Look at a place."""
    return place


OPTIONS: dict[str, Any] = {
    "tools": [look],
    "system_prompt": "You are Ada.",
    "middleware": [SkillsMiddleware(backend=StateBackend(), sources=["/skills"], tools=[look])],
    "subagents": [{"name": "a", "description": "a", "skills": ["/own"]}],
    "skills": ["/skills", ("/more", "More")],
    "memory": ["/AGENTS.md"],
    "permissions": [FilesystemPermission(operations=["read"], paths=["/x"], mode="deny")],
    "backend": FilesystemBackend(root_dir=Path(__file__).parent),
    "interrupt_on": {"ls": True},
    "response_format": Verdict,
    "state_schema": Counted,
    "context_schema": Verdict,
    "checkpointer": InMemorySaver(),
    "store": InMemoryStore(),
    "debug": True,
    "name": "ada",
    "cache": InMemoryCache(),
    "limits": Limits(model_calls=5),
    "model_retries": 1,
    "fallback_models": [ScriptedModel()],
    "mcp": {"clock": {"command": "clock"}},
    "file_history": FileHistory(Path(__file__).parent / "none"),
    "tool_search": True,
}


def test_every_option_is_tried() -> None:
    assert OPTIONS.keys() == inspect.signature(create_deep_agent).parameters.keys() - {"model"}


@pytest.mark.filterwarnings("ignore:the skills directory:UserWarning")
@pytest.mark.parametrize("option", OPTIONS)
def test_an_agent_with_this_option_and_skills_has_its_schemas(option: str) -> None:
    skills = {} if option == "middleware" else {"skills": ["/skills"]}
    given: dict[str, Any] = {"checkpointer": InMemorySaver(), **skills, option: OPTIONS[option]}
    agent = create_deep_agent(ScriptedModel(), **given)

    given_in = agent.get_input_jsonschema()["properties"]
    assert {"messages", "skills_metadata", "pinned_skills"} <= given_in.keys()
    assert [key for key in given_in if key.startswith(("_", "skills_load", "memory"))] == []
    given_out = agent.get_output_jsonschema()["properties"]
    assert [key for key in given_out if "skill" in key or "memory" in key] == []
    agent.get_context_jsonschema()
