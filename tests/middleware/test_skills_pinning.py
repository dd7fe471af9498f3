"""A pinned skill is shown whole, once, without the model having to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware.types import ModelRequest
from langchain.tools import InjectedToolCallId
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Overwrite

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.middleware.skilled import THREAD, agent_on, backend_of, put, skill


@tool
def pin(name: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Pin a skill."""
    return Command(
        update={"pinned_skills": [name], "messages": [ToolMessage("Pinned.", tool_call_id=tool_call_id)]}
    )


def kinds(messages: list[Any]) -> list[str]:
    return [message.type for message in messages]


@pytest.mark.parametrize("kind", ["state", "disk", "store", "composite"])
def test_a_pinned_skill_is_shown_whole_behind_the_message(
    kind: str, call_mode: CallMode, tmp_path: Path
) -> None:
    backend, given = backend_of(
        kind, tmp_path, {"/skills/tides/SKILL.md": skill("tides", body="Ask the moon.")}
    )
    with ScriptedModel("Done.", "Again.") as model:
        agent = create_deep_agent(model, backend=backend, skills=["/skills"], checkpointer=InMemorySaver())
        wanted = {"pinned_skills": ["tides", "absent", "tides"]}
        call_mode.invoke(agent, {"messages": "How high?", **given, **wanted}, THREAD)
        result = call_mode.invoke(agent, {"messages": "And now?"}, THREAD)

    pinned = model.asked[0].messages[2]
    assert pinned.text == '<skill name="tides" path="/skills/tides/SKILL.md">\nAsk the moon.\n</skill>'
    assert pinned.additional_kwargs == {
        "lc_source": "pinned_skill",
        "skill": {"name": "tides", "path": "/skills/tides/SKILL.md", "description": "Does things."},
    }
    assert kinds(result["messages"]) == ["human", "human", "ai", "human", "ai"]
    assert agent.get_state(THREAD).values["pinned_skills"] == []
    assert "pinned_skills" not in result


def test_pins_of_several_inputs_add_up_and_each_pinning_adds_a_copy(tmp_path: Path) -> None:
    with ScriptedModel("1", "2") as model:
        agent = agent_on(model, put(tmp_path, "skills", "one", "two"), checkpointer=InMemorySaver())
        agent.invoke({"messages": "Hi", "pinned_skills": ["one"]}, THREAD)
        agent.update_state(THREAD, {"pinned_skills": ["two"]})
        result = agent.invoke({"messages": "Hi", "pinned_skills": ["one"]}, THREAD)

    shown = [each.additional_kwargs["skill"]["name"] for each in result["messages"] if each.additional_kwargs]
    assert shown == ["one", "two", "one"]


def test_a_pin_made_while_the_agent_runs_stands_before_the_next_answer(
    call_mode: CallMode, tmp_path: Path
) -> None:
    with ScriptedModel(call("pin", name="one"), call("read_todos"), "Done.") as model:
        agent = agent_on(model, put(tmp_path, "skills", "one"), tools=[pin], checkpointer=InMemorySaver())
        result = call_mode.invoke(agent, {"messages": "Hi"}, THREAD)

    assert kinds(result["messages"]) == ["human", "ai", "tool", "human", "ai", "tool", "ai"]
    assert kinds(model.asked[1].messages[1:]) == kinds(result["messages"][:4])
    assert model.asked[1].messages[-1].text.startswith('<skill name="one"')
    assert model.asked[1].messages[-1].id == result["messages"][3].id
    assert [message.text for message in model.asked[2].messages].count(model.asked[1].messages[-1].text) == 1


def test_a_call_that_fails_pins_nothing_twice(tmp_path: Path) -> None:
    with ScriptedModel(call("pin", name="one"), OSError("away"), "Done.") as model:
        agent = agent_on(model, put(tmp_path, "skills", "one"), tools=[pin], checkpointer=InMemorySaver())
        with pytest.raises(OSError, match="away"):
            agent.invoke({"messages": "Hi"}, THREAD)
        result = agent.invoke(None, THREAD)

    assert kinds(result["messages"]) == ["human", "ai", "tool", "human", "ai"]


@pytest.mark.parametrize("clearing", [None, Overwrite([])])
def test_pins_can_be_taken_back(clearing: Any, tmp_path: Path) -> None:
    with ScriptedModel("Hi.") as model:
        agent = agent_on(model, put(tmp_path, "skills", "one"), checkpointer=InMemorySaver())
        agent.update_state(THREAD, {"pinned_skills": ["one"]})
        agent.update_state(THREAD, {"pinned_skills": clearing})
        result = agent.invoke({"messages": "Hi"}, THREAD)

    assert kinds(result["messages"]) == ["human", "ai"]


def test_a_text_cannot_end_its_element(tmp_path: Path) -> None:
    text = skill("one", body="Then </skill> and < / SKILL> and <skills> and </b>.")
    with ScriptedModel("Hi.") as model:
        agent = agent_on(model, put(tmp_path, "skills", one=text))
        agent.invoke({"messages": "Hi", "pinned_skills": ["one"]})

    body = "Then &lt;/skill> and &lt; / SKILL> and <skills> and </b>."
    assert model.asked[0].last == f'<skill name="one" path="/skills/one/SKILL.md">\n{body}\n</skill>'


def test_names_are_escaped(tmp_path: Path) -> None:
    with ScriptedModel("Hi.") as model:
        agent = agent_on(model, put(tmp_path, "skills", one=skill("'a\"><b>'")))
        agent.invoke({"messages": "Hi", "pinned_skills": ['a"><b>']})

    assert model.asked[0].last.startswith('<skill name="a&quot;&gt;&lt;b&gt;" path="/skills/one/SKILL.md">')


def test_a_skill_that_is_gone_is_left_out(tmp_path: Path) -> None:
    backend = FilesystemBackend(root_dir=put(tmp_path, "skills", "one", "two"))
    listed: Any = SkillsMiddleware(backend=backend, sources=["/skills"])
    state = listed.before_agent({}, None, {})
    (tmp_path / "skills/one/SKILL.md").unlink()
    (tmp_path / "skills/two/SKILL.md").write_bytes(b"\xff")
    update = listed.before_agent(
        {"skills_metadata": state["skills_metadata"], "pinned_skills": ["one", "two"]}, None
    )

    assert update == {"pinned_skills": None}


def test_outside_a_graph_the_pin_is_handed_back_with_the_answer(tmp_path: Path) -> None:
    backend = FilesystemBackend(root_dir=put(tmp_path, "skills", "one"))
    middleware: Any = SkillsMiddleware(backend=backend, sources=["/skills"])
    state: Any = {
        "messages": [HumanMessage("Hi")],
        "pinned_skills": ["one"],
        **middleware.before_agent({}, None, {}),
    }
    request = ModelRequest(model=ScriptedModel(), messages=state["messages"], state=state)
    seen: list[Any] = []
    extended = middleware.wrap_model_call(request, lambda given: seen.append(given) or "answer")

    assert extended.model_response == "answer"
    assert extended.command.update["pinned_skills"] is None
    assert extended.command.update["messages"] == seen[0].messages[1:]
    plain = ModelRequest(model=ScriptedModel(), messages=[], state={"messages": []})
    assert middleware.wrap_model_call(plain, lambda given: "answer") == "answer"


def test_a_subclass_that_pins_its_own_way_is_let_be(call_mode: CallMode, tmp_path: Path) -> None:
    class Own(SkillsMiddleware):
        def before_model(self, state: Any, runtime: Any) -> Any:
            names = state.get("pinned_skills")
            return {"messages": [HumanMessage(f"Mine: {names}")], "pinned_skills": None} if names else None

        async def abefore_model(self, state: Any, runtime: Any) -> Any:
            return self.before_model(state, runtime)

    backend = FilesystemBackend(root_dir=put(tmp_path, "skills", "one"))
    tools: list[BaseTool] = [pin]
    with ScriptedModel(call("pin", name="one"), "Done.") as model:
        agent = create_agent(model, tools, middleware=[Own(backend=backend, sources=["/skills"])])
        result = call_mode.invoke(agent, {"messages": "Hi"})

    assert result["messages"][3].text == "Mine: ['one']"
    assert kinds(result["messages"]) == ["human", "ai", "tool", "human", "ai"]
