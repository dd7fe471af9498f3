"""The documented ways to declare subagents and to hand work to them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage
from langgraph.graph.state import CompiledStateGraph

from deepagents import CompiledSubAgent, SubAgent, SubAgentMiddleware, create_deep_agent
from deepagents.errors import ConfigError
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode

QUESTION = {"messages": [{"role": "user", "content": "Write about fjords"}]}


def search(query: str) -> str:
    """Search."""
    return f"found {query}"


def count(words: str) -> int:
    """Count words."""
    return len(words.split())


def publish(text: str) -> str:
    """Publish."""
    return "published"


def hand_to(name: str, what: str = "Go") -> AIMessage:
    return call("task", subagent_type=name, description=what)


def test_model_names_for_the_agent_and_for_its_subagents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "fake")
    monkeypatch.setenv("OPENAI_API_KEY", "fake")
    reader: SubAgent = {
        "name": "reader",
        "description": "Reads contracts",
        "system_prompt": "You read contracts.",
        "tools": [search],
        "model": "claude-sonnet-4-5-20250929",
    }
    analyst: SubAgent = {**reader, "name": "analyst", "model": "openai:gpt-5"}
    writer: SubAgent = {**reader, "name": "writer", "model": "gpt-4o"}

    agent = create_deep_agent(model="claude-sonnet-4-5-20250929", subagents=[reader, analyst, writer])

    assert isinstance(agent, CompiledStateGraph)


def test_a_model_that_no_provider_knows_is_refused_while_building() -> None:
    with pytest.raises(ConfigError, match="nobody:none"):
        create_deep_agent(
            ScriptedModel(), subagents=[{"name": "a", "description": "b", "model": "nobody:none"}]
        )


def test_a_researcher_with_its_own_prompt_tools_and_model(call_mode: CallMode) -> None:
    own = ScriptedModel(call("search", query="fjords"), "They are deep.")
    researcher: SubAgent = {
        "name": "researcher",
        "description": "Looks into hard questions",
        "system_prompt": "You look things up.\n\nReport:\n- a summary\n- the sources",
        "tools": [search],
        "model": own,
    }
    with ScriptedModel(hand_to("researcher", "fjords"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[researcher]), QUESTION)

    assert own.asked[0].system.startswith("You look things up.\n\nReport:")
    assert [own.asked[0].last, own.asked[1].last] == ["fjords", "found fjords"]
    assert result["messages"][-2].text == "They are deep."
    assert "- researcher: Looks into hard questions" in str(model.asked[0].tools)


def test_a_subagent_without_a_model_takes_the_main_agents(call_mode: CallMode) -> None:
    sender: SubAgent = {
        "name": "sender",
        "description": "Sends",
        "system_prompt": "Send.",
        "tools": [publish],
    }
    with ScriptedModel(hand_to("sender"), "sent", "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[sender]), QUESTION)

    assert model.asked[1].system.startswith("Send.")
    assert "publish" in model.asked[1].tool_names
    assert result["messages"][-2].text == "sent"


def test_each_of_several_subagents_sees_its_own_tools_alone(call_mode: CallMode) -> None:
    trades = {"collector": search, "analyst": count, "writer": publish}
    models = {name: ScriptedModel(f"{name} is done") for name in trades}
    subagents: list[SubAgent] = [
        {"name": name, "description": name, "system_prompt": name, "tools": [own], "model": models[name]}
        for name, own in trades.items()
    ]
    script = calls(*(("task", {"subagent_type": name, "description": "Go"}) for name in trades))
    with ScriptedModel(script, "Done.") as model:
        agent = create_deep_agent(model, system_prompt="You coordinate.", subagents=subagents)
        result = call_mode.invoke(agent, QUESTION)

    offered = {name: {"search", "count", "publish"} & {*models[name].asked[0].tool_names} for name in trades}
    assert offered == {"collector": {"search"}, "analyst": {"count"}, "writer": {"publish"}}
    assert [each.text for each in result["messages"][-4:-1]] == [f"{name} is done" for name in trades]


def test_name_and_description_are_enough(call_mode: CallMode) -> None:
    quick: SubAgent = {"name": "quick", "description": "For one search"}
    deep: SubAgent = {"name": "deep", "description": "For many searches"}
    with ScriptedModel(hand_to("deep"), "deep enough", "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[search], subagents=[quick, deep]), QUESTION)

    assert "search" in model.asked[1].tool_names
    assert result["messages"][-2].text == "deep enough"


@pytest.mark.parametrize(
    ("fragment", "missing"),
    [({"name": "mailer", "tools": [publish]}, "description"), ({"system_prompt": "Be brief."}, "name")],
)
def test_a_fragment_is_refused_with_the_key_that_it_lacks(fragment: Any, missing: str) -> None:
    with pytest.raises(ConfigError, match=f"needs a {missing}"):
        create_deep_agent(ScriptedModel(), subagents=[fragment])


def test_the_general_purpose_agent_is_always_there(call_mode: CallMode) -> None:
    with ScriptedModel(hand_to("general-purpose", "fjords"), "They are deep.", "Done.") as model:
        agent = create_deep_agent(model, tools=[search], system_prompt="You know water.")
        result = call_mode.invoke(agent, QUESTION)

    assert model.asked[1].system.startswith("You know water.")
    assert "search" in model.asked[1].tool_names
    assert result["messages"][-2].text == "They are deep."


def test_a_compiled_agent_is_a_subagent(call_mode: CallMode) -> None:
    own = ScriptedModel(call("count", words="a b c"), "three")
    graph = create_agent(model=own, tools=[count], system_prompt="You count.")
    counter = CompiledSubAgent(name="counter", description="Counts", runnable=graph)
    with ScriptedModel(hand_to("counter", "a b c"), "Three.") as model:
        agent = create_deep_agent(model, tools=[search], system_prompt="You lead.", subagents=[counter])
        result = call_mode.invoke(agent, QUESTION)

    assert own.asked[0].system == "You count."
    assert own.asked[0].tool_names == ["count"]
    assert result["messages"][-2].text == "three"


def test_arguments_by_other_names_are_explained_to_the_model(call_mode: CallMode) -> None:
    wrong = call("task", name="general-purpose", task="Look into fjords")
    with ScriptedModel(wrong, "I see.") as model:
        result = call_mode.invoke(create_deep_agent(model), QUESTION)

    refused = result["messages"][-2]
    assert refused.status == "error"
    assert "name: task takes description and subagent_type only" in refused.text


def test_the_task_tool_can_be_called_by_hand() -> None:
    class Ready:
        def with_config(self, config: Any) -> Ready:
            return self

        def invoke(self, state: Any, config: Any) -> dict[str, Any]:
            return {"messages": [AIMessage(f"did {state['messages'][-1].text} in {state['place']}")]}

    spec: Any = {"name": "ready", "description": "d", "runnable": Ready()}
    [task] = SubAgentMiddleware(subagents=[spec]).tools
    runtime: Any = ToolRuntime(
        state={"messages": [], "place": "Oslo"},
        context=None,
        config={},
        stream_writer=print,
        tool_call_id="1",
        store=None,
    )
    done: Any = vars(task)["func"](description="it", subagent_type="ready", runtime=runtime)

    assert done.update["messages"][0].text == "did it in Oslo"


def test_an_unknown_key_is_reported_at_the_callers_line() -> None:
    spec: Any = {"name": "a", "description": "b", "system_promt": "x"}
    with pytest.warns(UserWarning, match="system_promt.*did you mean 'system_prompt'") as warned:
        create_deep_agent(ScriptedModel(), subagents=[spec])

    assert [each.filename for each in warned] == [__file__]
