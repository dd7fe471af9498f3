"""The documented ways to create an agent: its model, prompt, tools, middleware and backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain.chat_models import init_chat_model
from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.cache.memory import InMemoryCache
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.graph import get_default_model
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

QUESTION = {"messages": [{"role": "user", "content": "How tall is Galdhøpiggen?"}]}


def look_up(
    question: str, most: int = 5, area: Literal["general", "maps"] = "general", whole: bool = False
) -> dict[str, Any]:
    """Look something up."""
    return {"question": question, "most": most, "area": area, "whole": whole}


def test_a_function_with_defaults_and_choices_is_a_tool(call_mode: CallMode) -> None:
    with ScriptedModel(call("look_up", question="height"), "2469 m.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[look_up]), QUESTION)

    offered = next(each for each in model.asked[0].tools if each["function"]["name"] == "look_up")
    arguments = offered["function"]["parameters"]
    assert arguments["required"] == ["question"]
    assert arguments["properties"]["area"]["enum"] == ["general", "maps"]
    assert '"most": 5' in result["messages"][-2].text


def test_tools_and_a_prompt_stand_beside_the_built_in_ones(call_mode: CallMode) -> None:
    with ScriptedModel("2469 m.") as model:
        agent = create_deep_agent(model, tools=[look_up], system_prompt="You know mountains.")
        call_mode.invoke(agent, QUESTION)

    documented = ["write_todos", "ls", "read_file", "write_file", "edit_file", "glob", "grep", "task"]
    assert {*documented, "read_todos", "look_up"} <= set(model.asked[0].tool_names)
    assert model.asked[0].system.startswith("You know mountains.\n\nYou are a deep agent")


def test_a_question_goes_in_and_the_answer_is_the_last_message(call_mode: CallMode) -> None:
    with ScriptedModel("2469 m.") as model:
        result = call_mode.invoke(create_deep_agent(model), QUESTION)

    assert model.asked[0].last == "How tall is Galdhøpiggen?"
    assert result["messages"][-1].content == "2469 m."


@pytest.mark.parametrize("name", ["gpt-5", "openai:gpt-4o"])
def test_a_model_made_by_its_name_is_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "fake")

    assert isinstance(create_deep_agent(model=init_chat_model(name)), CompiledStateGraph)


@pytest.mark.parametrize(
    "name", ["claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-20250514", "openai:gpt-4o", "gpt-4o"]
)
def test_a_name_alone_is_enough(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "fake")
    monkeypatch.setenv("OPENAI_API_KEY", "fake")

    assert isinstance(create_deep_agent(model=name), CompiledStateGraph)


def test_a_prompt_alone_is_enough_and_takes_the_default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "fake")
    with pytest.warns(DeprecationWarning, match="model=None") as warned:
        agent = create_deep_agent(system_prompt="You know mountains.")

    assert isinstance(agent, CompiledStateGraph)
    assert [each.filename for each in warned] == [__file__]


def test_the_default_model_is_the_documented_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "fake")
    with pytest.warns(DeprecationWarning, match="Relying on the default model") as warned:
        model: Any = get_default_model()

    assert model.model == "claude-sonnet-4-6"
    assert [each.filename for each in warned] == [__file__]


async def test_tools_of_a_tool_server_are_only_async_and_bring_blocks() -> None:
    async def forecast(city: str) -> tuple[list[dict[str, str]], None]:
        return [{"type": "text", "text": f"Fog in {city}"}], None

    served = StructuredTool.from_function(
        coroutine=forecast, name="forecast", description="Forecast.", response_format="content_and_artifact"
    )
    with ScriptedModel(call("forecast", city="Bergen"), "Fog.") as model:
        agent = create_deep_agent(model, tools=[served])
        states = [state async for state in agent.astream(QUESTION, stream_mode="values")]

    assert [state["messages"][-1].text for state in states][-2:] == ["Fog in Bergen", "Fog."]


def test_a_stream_tells_what_each_step_changed(call_mode: CallMode) -> None:
    with ScriptedModel(call("look_up", question="height"), "2469 m.") as model:
        updates = call_mode.stream(create_deep_agent(model, tools=[look_up]), QUESTION)

    steps = [next(iter(update)) for update in updates]
    assert [step for step in steps if step in {"model", "tools"}] == ["model", "tools", "model"]


def test_middleware_brings_tools_as_a_class_attribute(call_mode: CallMode) -> None:
    @tool
    def tide(harbour: str) -> str:
        """Tell the tide."""
        return f"High water in {harbour}"

    class Tides(AgentMiddleware[Any, Any, Any]):
        tools: Sequence[BaseTool] = [tide]

    with ScriptedModel(call("tide", harbour="Moss"), "Now.") as model:
        result = call_mode.invoke(create_deep_agent(model, middleware=[Tides()]), QUESTION)

    assert result["messages"][-2].text == "High water in Moss"


def test_a_directory_on_disk_as_backend(call_mode: CallMode, tmp_path: Path) -> None:
    with ScriptedModel(call("write_file", file_path="/peak.txt", content="2469"), "Noted.") as model:
        agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=str(tmp_path)))
        call_mode.invoke(agent, QUESTION)

    assert (tmp_path / "peak.txt").read_text() == "2469"


def test_a_shell_as_backend_adds_execute(call_mode: CallMode, tmp_path: Path) -> None:
    with ScriptedModel(call("execute", command="echo 2469"), "2469 m.") as model:
        agent = create_deep_agent(model, backend=LocalShellBackend(root_dir=str(tmp_path)))
        result = call_mode.invoke(agent, QUESTION)

    assert result["messages"][-2].text.startswith("2469")


def test_files_are_kept_in_the_state_by_default(call_mode: CallMode) -> None:
    script = (
        call("write_file", file_path="/draft.txt", content="a\nb"),
        call("read_file", file_path="/draft.txt"),
        "Ok.",
    )
    with ScriptedModel(*script) as model:
        result = call_mode.invoke(create_deep_agent(model), QUESTION)

    assert result["files"]["/draft.txt"]["content"] == "a\nb"
    assert result["messages"][-2].text.split() == ["1", "a", "2", "b"]


class Height(BaseModel):
    metres: int


@pytest.mark.parametrize("wanted", [Height, ToolStrategy(Height)], ids=["type", "strategy"])
def test_a_structured_answer(call_mode: CallMode, wanted: Any) -> None:
    with ScriptedModel(call("Height", metres=2469)) as model:
        result = call_mode.invoke(create_deep_agent(model, response_format=wanted), QUESTION)

    assert result["structured_response"] == Height(metres=2469)


@dataclass
class Hiker:
    name: str


def test_tools_see_the_context_of_the_run(call_mode: CallMode) -> None:
    @tool
    def greet(runtime: ToolRuntime[Hiker, Any]) -> str:
        """Greet whoever asks."""
        return f"Hello {runtime.context.name}"

    with ScriptedModel(call("greet"), "Done.") as model:
        agent = create_deep_agent(model, tools=[greet], context_schema=Hiker)
        result = call_mode.invoke(agent, QUESTION, context=Hiker("Ada"))

    assert result["messages"][-2].text == "Hello Ada"


def test_name_cache_and_debug_are_handed_on(call_mode: CallMode, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedModel("2469 m.") as model:
        agent = create_deep_agent(model, name="guide", cache=InMemoryCache(), debug=True)
        result = call_mode.invoke(agent, QUESTION)

    assert agent.name == "guide"
    assert result["messages"][-1].name == "guide"
    assert "[values]" in capsys.readouterr().out
