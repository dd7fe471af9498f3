"""What a spec of a subagent may say, and what it may not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from deepagents import CompiledSubAgent, SubAgentMiddleware, create_deep_agent
from deepagents.errors import ConfigError
from deepagents.middleware.subagents import SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY, create_sub_agent
from deepagents.middleware.subagents.middleware import build_task_tool
from deepagents.testing import Asked, ScriptedModel, call
from tests.conftest import CallMode

GO = {"messages": "Go"}


class Tide(BaseModel):
    """How high."""

    metres: int


class Wind(BaseModel):
    """How strong."""

    knots: int


def delegate(to: str = "child") -> AIMessage:
    return call("task", description="Go", subagent_type=to)


def child(*script: Any, **rest: Any) -> Any:
    return {"name": "child", "description": "does it", "model": ScriptedModel(*script), **rest}


def ran(spec: Any, **given: Any) -> dict[str, Any]:
    files = given.pop("files", {})
    with ScriptedModel(delegate(), "Done.") as model:
        agent = create_deep_agent(model, subagents=[spec], **given)
        return agent.invoke({**GO, "files": files})


def weather() -> str:
    """Tell the weather."""
    return "rain"


def winds() -> str:
    """Tell the winds."""
    return "west"


@dataclass
class Reading:
    """One reading."""

    metres: int


class Row(TypedDict):
    """One row."""

    metres: int


class Unreadable(AgentMiddleware[Any, Any, Any]):
    """Its state names a type that is not there."""

    state_schema: Any = type("Unread", (), {"__annotations__": {"tide": "Missing"}})


class Prefixing(AgentMiddleware[Any, Any, Any]):
    """Marks what a model says."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        (said,) = handler(request).result
        return said if said.tool_calls else AIMessage(f"> {said.text}")


@pytest.mark.parametrize("tools", [None, []])
def test_no_tools_are_no_tools_of_the_callers_either(tools: Any) -> None:
    spec = child("ok", tools=tools)
    ran(spec, tools=[weather])

    assert "weather" not in spec["model"].asked[0].tool_names


@pytest.mark.parametrize(
    "key", ["model", "middleware", "skills", "permissions", "interrupt_on", "response_format", "mode"]
)
def test_none_is_as_good_as_nothing(key: str) -> None:
    spec: Any = {"name": "child", "description": "does it", key: None}
    with ScriptedModel(delegate(), "ok", "Done.") as model:
        result = create_deep_agent(model, subagents=[spec]).invoke(GO)
    assert result["messages"][-2].text == "ok"


@pytest.mark.parametrize("model", ["openai:gpt-5", {"model": "gpt-5", "model_provider": "openai"}])
@pytest.mark.filterwarnings("ignore:A model as a dict:DeprecationWarning")
def test_a_model_may_be_a_name_or_settings(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "fake")
    spec: Any = {"name": "child", "description": "d", "model": model}
    twin: Any = {**spec, "name": "twin", "mode": "fork"}
    create_deep_agent(ScriptedModel(), subagents=[spec, twin])


def test_middleware_of_its_own_sees_its_calls_alone() -> None:
    seen: list[str] = []

    class Note(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any, runtime: Any) -> None:
            seen.append(state["messages"][-1].text)

    ran(child("ok", middleware=[Note()]))

    assert seen == ["Go"]


def test_a_caller_may_ask_for_another_format_for_one_call(call_mode: CallMode) -> None:
    """Each format is compiled once, and the subagent's own subagents are not asked for it."""
    made: list[str] = []

    class Compiled(AgentMiddleware[Any, Any, Any]):
        def __getattribute__(self, name: str) -> Any:
            made.append(name)
            return super().__getattribute__(name)

    def answer(asked: Asked) -> Any:
        wanted = next(name for name in asked.tool_names if name in ("Tide", "Wind"))
        return call(wanted, **({"metres": 13} if wanted == "Tide" else {"knots": 30}))

    spec: Any = {
        "name": "child",
        "description": "does it",
        "model": ScriptedModel(always=answer),
        "response_format": Tide,
        "middleware": [Compiled()],
    }
    agent = create_deep_agent(ScriptedModel(*[delegate(), "Done."] * 4), subagents=[spec])
    asked_for = [None, Wind, Wind, None]
    said: list[str] = []
    counts: list[int] = []
    for wanted in asked_for:
        config: Any = {"configurable": {SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY: wanted}}
        said.append(call_mode.invoke(agent, GO, config)["messages"][-2].text)
        counts.append(made.count("tools"))

    assert said == ['{"metres":13}', '{"knots":30}', '{"knots":30}', '{"metres":13}']
    assert counts[0] < counts[1]
    assert counts[1:] == [counts[1]] * 3


def test_a_compiled_subagent_refuses_another_format() -> None:
    ready = CompiledSubAgent(name="child", description="d", runnable=RunnableLambda(lambda state: state))
    with ScriptedModel(delegate(), "Oh.") as model:
        agent = create_deep_agent(model, subagents=[ready])
        config: Any = {"configurable": {SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY: Wind}}
        refused = agent.invoke(GO, config)["messages"][-2]

    assert refused.status == "error"
    assert refused.additional_kwargs["error_code"] == "not_supported"
    assert 'response_schema cannot be used with compiled subagent "child"' in refused.text


def test_a_call_without_an_id_is_an_error_result() -> None:
    tool: Any = SubAgentMiddleware(subagents=[child("ok", tools=[])]).tools[0]
    runtime: Any = ToolRuntime(
        state={"messages": []},
        context=None,
        config={},
        stream_writer=lambda _: None,
        tool_call_id=None,
        store=None,
    )
    refused = tool.func(description="Go", subagent_type="child", runtime=runtime)

    assert refused.status == "error"
    assert "needs an id" in refused.text


def test_who_can_be_called_and_what_is_private_can_be_asked_and_said() -> None:
    middleware = SubAgentMiddleware(subagents=[child("ok", tools=[])])
    middleware.private_state_keys = frozenset({"own"})

    assert middleware.subagent_names == {"child"}
    assert middleware.private_state_keys == {"own"}


def test_a_complete_spec_compiles_as_it_stands(call_mode: CallMode) -> None:
    spec = child(call("weather"), call("Tide", metres=2), tools=[weather], system_prompt="You are Ada.")
    graph: Any = create_sub_agent(spec, response_format=Tide)
    result = call_mode.invoke(graph, GO)

    assert result["structured_response"] == Tide(metres=2)
    assert spec["model"].asked[0].system == "You are Ada."
    assert spec["model"].asked[0].tool_names == ["weather", "Tide"]


def test_a_spec_compiled_alone_is_spared_what_its_model_does_not_take() -> None:
    blind = ScriptedModel("I see nothing.", profile={"image_inputs": False})
    graph: Any = create_sub_agent({"name": "child", "model": blind, "tools": []})
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    graph.invoke({"messages": [{"role": "user", "content": [picture]}]})

    assert "aGk=" not in str(blind.asked[0].messages)


def test_the_tool_can_be_made_alone() -> None:
    tool = build_task_tool([child("ok", tools=[])], "Choose: {available_agents}")

    assert tool.name == "task"
    assert tool.description == "Choose: - child: does it"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"tools": "weather"}, "tools must be a list, got 'weather'"),
        ({"tools": {"a": 1}}, "tools must be a list"),
        ({"tools": [5]}, "tools must hold LangChain tools, functions or dicts, got 5"),
        ({"tools": ["weather"]}, "tools must hold .* got 'weather'"),
        ({"tools": [lambda place: place]}, "the function '<lambda>' in tools needs a docstring"),
        ({"response_format": 42}, "response_format must be a pydantic model.* got 42"),
        ({"response_format": int}, "response_format must be .* got <class 'int'>"),
        ({"middleware": [Unreadable()]}, "the state_schema of middleware 'Unreadable' cannot be read"),
        ({"middleware": ["todos"]}, "middleware must hold middleware objects, got 'todos'"),
        ({"system_prompt": 3}, "system_prompt must be text, got 3"),
        ({"interrupt_on": ["delete"]}, "interrupt_on must be a dict from tool names"),
        ({"interrupt_on": {"ls": 5}}, "'child': interrupt_on of 'ls' must be True, False or"),
        ({"interrupt_on": {"ls": {"allowed_decisions": ["no"]}}}, "'child': allowed_decisions of 'ls'"),
        ({"runnable": "graph"}, "runnable must be a Runnable.*got 'graph'"),
        ({"description": 7}, "needs a description"),
        ({"name": ""}, "needs a name"),
        ({"model": 7}, "model must be a chat model"),
    ],
)
def test_a_value_that_cannot_be_is_named(spec: dict[str, Any], complaint: str) -> None:
    whole: Any = {"name": "child", "description": "d", **spec}
    with pytest.raises(ConfigError, match=complaint):
        create_deep_agent(ScriptedModel(), subagents=[whole])


@pytest.mark.parametrize(
    "spec",
    [
        {"tools": [weather, Tide, tool(winds), {"type": "web_search", "name": "web_search"}]},
        *(
            {"response_format": each}
            for each in (Tide, Reading, Tide | Wind, ToolStrategy(Tide), {"title": "T"})
        ),
        {"response_format": Row},
        {"middleware": [AgentMiddleware()], "response_format": None},
    ],
)
def test_what_can_be_is_taken(spec: dict[str, Any]) -> None:
    create_deep_agent(ScriptedModel(), subagents=[child(**spec)])


def test_what_can_be_gone_through_once_is_kept() -> None:
    spec = child("Rain.", tools=iter([weather]), middleware=iter([Prefixing()]))
    once: Any = {"middleware": iter([Prefixing()]), "subagents": iter([spec]), "tools": iter([weather])}
    with ScriptedModel(delegate(), "Done.") as model:
        agent = create_deep_agent(model, **once)
        result = agent.invoke(GO)

    assert [message.text for message in result["messages"][-2:]] == ["> Rain.", "> Done."]
    assert "weather" in model.asked[0].tool_names
    assert "weather" in spec["model"].asked[0].tool_names


def test_a_subagent_that_cannot_be_built_after_all_says_so() -> None:
    class Twice(AgentMiddleware[Any, Any, Any]):
        """Brings a tool that no model can be told of."""

        tools: Any = (lambda place: place,)

    with ScriptedModel(delegate(), "Done.") as model:
        agent = create_deep_agent(model, subagents=[child("x", middleware=[Twice()])])
        result = agent.invoke(GO)

    said = result["messages"][-2]
    assert "the subagent 'child' cannot be built: " in said.text
    assert "docstring" in said.text
    assert "Check the arguments" not in said.text
    assert said.additional_kwargs["error_code"] == "not_supported"


def test_what_a_compiled_subagent_cannot_heed_is_said() -> None:
    ready: Any = {
        "name": "a",
        "description": "d",
        "runnable": RunnableLambda(lambda state: state),
        "tools": [],
    }
    with pytest.warns(UserWarning, match=r"compiled already: \['tools'\] have no effect"):
        create_deep_agent(ScriptedModel(), subagents=[ready])
