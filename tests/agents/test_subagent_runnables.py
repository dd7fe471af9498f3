"""Runnables of many kinds as subagents: what they may return, be called by, and when they are made."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from deepagents import CompiledSubAgent, create_deep_agent
from deepagents.middleware.subagents import SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY
from deepagents.testing import Asked, ScriptedModel, call
from tests.agents.delegating import delegate
from tests.conftest import CallMode

GO = {"messages": "Go"}


def test_a_plain_text_in_the_place_of_messages_is_the_answer() -> None:
    ready = CompiledSubAgent(
        name="plain", description="d", runnable=RunnableLambda(lambda _: {"messages": "Hello. "})
    )
    with ScriptedModel(delegate("plain"), "Done.") as model:
        result = create_deep_agent(model, subagents=[ready]).invoke(GO)

    assert result["messages"][-2].text == "Hello."


def test_an_awaiting_caller_may_use_what_only_blocks(call_mode: CallMode) -> None:
    class Blocking:
        def with_config(self, config: Any) -> Any:
            return self

        def invoke(self, state: Any, config: Any = None) -> Any:
            return {"messages": [AIMessage("Worked.")]}

    blocking: Any = Blocking()
    ready = CompiledSubAgent(name="plain", description="d", runnable=blocking)
    with ScriptedModel(delegate("plain"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[ready]), GO)

    assert result["messages"][-2].text == "Worked."


endless: dict[str, Any] = {}
endless["itself"] = endless


@pytest.mark.parametrize(
    ("structured", "expected"),
    [
        ({(1, 2): {3}}, '{"1,2": [3]}'),
        (endless, "{'itself': {...}}"),
        ({(1, 2): "\ud800"}, "{(1, 2): '\\ud800'}"),
    ],
)
def test_an_answer_that_is_no_json_is_said_all_the_same(structured: Any, expected: str) -> None:
    def work(state: Any) -> dict[str, Any]:
        return {"structured_response": structured, "files": {"/a.txt": {"content": "A", "encoding": "utf-8"}}}

    ready = CompiledSubAgent(name="maker", description="d", runnable=RunnableLambda(work))
    with ScriptedModel(delegate("maker"), "Done.") as model:
        result = create_deep_agent(model, subagents=[ready]).invoke(GO)

    assert result["messages"][-2].text == expected
    assert result["files"]["/a.txt"]["content"] == "A"


def test_a_first_use_holds_up_no_event_loop(call_mode: CallMode) -> None:
    made_in: set[int] = set()

    class Made(AgentMiddleware[Any, Any, Any]):
        def __getattribute__(self, name: str) -> Any:
            if name == "tools":
                made_in.add(threading.get_ident())
            return super().__getattribute__(name)

    spec: Any = {"name": "child", "description": "d", "middleware": [Made()], "model": ScriptedModel("Fine.")}
    agent = create_deep_agent(ScriptedModel(delegate("child"), "Done."), subagents=[spec])
    made_in.clear()
    call_mode.invoke(agent, GO)

    assert made_in
    assert threading.get_ident() not in made_in


def test_a_format_that_was_changed_in_place_is_another_one() -> None:
    wanted: dict[str, Any] = {"title": "Tide", "type": "object", "properties": {"a": {"type": "integer"}}}

    def answer(asked: Asked) -> AIMessage:
        offered = next(each["function"] for each in asked.tools if each["function"]["name"] == "Tide")
        return call("Tide", **dict.fromkeys(offered["parameters"]["properties"], 1))

    spec: Any = {"name": "child", "description": "d", "model": ScriptedModel(always=answer)}
    agent = create_deep_agent(ScriptedModel(*[delegate("child"), "Done."] * 2), subagents=[spec])
    config: Any = {"configurable": {SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY: wanted}}
    first = agent.invoke(GO, config)
    wanted["properties"]["b"] = {"type": "integer"}
    second = agent.invoke(GO, config)

    assert [each["messages"][-2].text for each in (first, second)] == ['{"a": 1}', '{"a": 1, "b": 1}']
