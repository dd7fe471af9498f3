"""Whoever watches a run can tell subagents apart: by namespace, name, and the call that started them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from deepagents import CompiledSubAgent, create_deep_agent
from deepagents.testing import ScriptedModel, calls
from tests.conftest import CallMode

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")

KINDS = ("isolated", "fork", "compiled")
GO = {"messages": [("user", "Go")]}


def team() -> Any:
    made = create_agent(ScriptedModel("compiled says"), tools=[], name="inner")
    turn = calls(*(("task", {"description": f"for {each}", "subagent_type": each}) for each in KINDS))
    subagents: list[Any] = [
        {"name": "isolated", "description": "d", "model": ScriptedModel("isolated says")},
        {"name": "fork", "description": "d", "mode": "fork", "model": ScriptedModel("fork says")},
        CompiledSubAgent(name="compiled", description="d", runnable=made),
    ]
    return turn, create_deep_agent(ScriptedModel(turn, "Done."), subagents=subagents)


def test_tokens_come_under_the_namespace_of_the_call_and_the_name_of_the_subagent(
    call_mode: CallMode,
) -> None:
    """Of a fork only what is its own, none of the conversation that it goes on with."""
    said: dict[Any, str] = {}
    _, agent = team()
    for namespace, (message, metadata) in call_mode.stream(agent, GO, stream_mode="messages", subgraphs=True):
        if not isinstance(message, AIMessage) or not message.text:
            continue
        key = (namespace, metadata.get("lc_agent_name"))
        said[key] = said.get(key, "") + message.text

    names = {name: namespace for namespace, name in said if name}
    assert sorted(names) == sorted(KINDS)
    assert len(set(names.values())) == len(KINDS)
    assert all(len(each) == 1 and each[0].startswith("tools:") for each in names.values())
    assert {name: said[namespace, name] for name, namespace in names.items()} == {
        each: f"{each} says" for each in KINDS
    }


def test_updates_and_values_of_subagents_come_under_their_namespaces(call_mode: CallMode) -> None:
    _, agent = team()
    seen = call_mode.stream(agent, GO, stream_mode=["updates", "values"], subgraphs=True)
    updated = {namespace for namespace, mode, _ in seen if mode == "updates" and namespace}
    public = {"messages", "files", "todos", "structured_response"}

    assert len(updated) == len(KINDS)
    assert all(each[0].startswith("tools:") for each in updated)
    assert {key for _, mode, data in seen if mode == "values" for key in data} <= public


def checked(handle: Any, ids: dict[str, str]) -> None:
    assert handle.cause == {"type": "toolCall", "tool_call_id": ids[handle.name]}
    assert len(handle.path) == 1
    assert handle.path[0].startswith("tools:")


def test_the_newer_event_stream_has_a_handle_for_each_subagent(call_mode: CallMode) -> None:
    turn, agent = team()
    ids = {each["args"]["subagent_type"]: str(each["id"]) for each in turn.tool_calls}

    async def watch() -> dict[str, Any]:
        said: dict[str, Any] = {}
        run = await agent.astream_events(GO, version="v3")
        async for handle in run.subagents:
            checked(handle, ids)
            said[handle.name] = ((await handle.output())["messages"][-1].text, handle.status)
        return said

    def look() -> dict[str, Any]:
        said: dict[str, Any] = {}
        for handle in agent.stream_events(GO, version="v3").subagents:
            checked(handle, ids)
            said[handle.name] = (handle.output["messages"][-1].text, handle.status)
        return said

    said = look() if call_mode.name == "sync" else asyncio.run(watch())
    assert said == {each: (f"{each} says", "completed") for each in KINDS}
