"""Tools that a skill includes appear when it is opened, stay, and run like any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents._async import run
from deepagents.backends import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware, disclosed_skill_tool_names
from deepagents.middleware.skills.tools import SkillToolSource
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode
from tests.middleware.skilled import THREAD, put, skill


@tool
def tide(place: str) -> str:
    """Tell the tide."""
    return f"13 m in {place}"


@tool
def moon() -> str:
    """Tell the moon."""
    raise OSError("clouds")


def planets() -> str:
    """Tell the planets."""
    return "eight"


TIDES = skill("tides", "Computes tides.", "metadata:", "  include_tools: [tide]")
SKY = skill("sky", "Looks up.", "metadata: {include_tools: moon planets}")
TOOLS: list[Any] = [tide, moon, planets]


def sky_and_sea(root: Path) -> FilesystemBackend:
    return FilesystemBackend(root_dir=put(root, "skills", tides=TIDES, sky=SKY))


def agent_of(model: ScriptedModel, root: Path, tools: Any = TOOLS, **options: Any) -> Any:
    backend = sky_and_sea(root)
    own = SkillsMiddleware(backend=backend, sources=["/skills"], tools=tools)
    return create_deep_agent(model, backend=backend, middleware=[own], **options)


def opened(name: str, **more: Any) -> AIMessage:
    return call("read_file", file_path=f"/skills/{name}/SKILL.md", **more)


def added(model: ScriptedModel) -> list[list[str]]:
    """Return, for each request, the tools beyond those of the first."""
    first = len(model.asked[0].tools)
    return [asked.tool_names[first:] for asked in model.asked]


def test_a_tool_appears_when_its_skill_is_read_and_runs(call_mode: CallMode, tmp_path: Path) -> None:
    with ScriptedModel(opened("tides", limit=1), call("tide", place="Saint-Malo"), "Done.") as model:
        result = call_mode.invoke(agent_of(model, tmp_path), {"messages": "How high?"})

    assert added(model) == [[], ["tide"], ["tide"]]
    assert result["messages"][-2].text == "13 m in Saint-Malo"
    assert "_skill_tools_disclosed" not in result


def test_tools_stand_in_the_order_of_opening_and_stay_for_the_thread(tmp_path: Path) -> None:
    script = (opened("tides"), "Now?", opened("sky"), opened("tides"), call("planets"), "Done.")
    with ScriptedModel(*script) as model:
        agent = agent_of(model, tmp_path, checkpointer=InMemorySaver())
        agent.invoke({"messages": "Go"}, THREAD)
        result = agent.invoke({"messages": "Go"}, THREAD)

    assert added(model) == [[], ["tide"], ["tide"], *[["tide", "moon", "planets"]] * 3]
    assert result["messages"][-2].text == "eight"
    assert disclosed_skill_tool_names(agent.get_state(THREAD).values) == {"tide", "moon", "planets"}


def test_it_stays_when_the_reading_is_gone_from_the_history(tmp_path: Path) -> None:
    with ScriptedModel(opened("tides"), "Now?", call("tide", place="Brest"), "Done.") as model:
        agent = agent_of(model, tmp_path, checkpointer=InMemorySaver())
        agent.invoke({"messages": "Go"}, THREAD)
        forgetting = [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("Go on")]
        result = agent.invoke({"messages": forgetting}, THREAD)

    assert added(model)[2:] == [["tide"], ["tide"]]
    assert result["messages"][-2].text == "13 m in Brest"


def test_it_goes_with_its_skill_and_comes_back_with_it(tmp_path: Path) -> None:
    gone = call("delete", file_path="/skills/tides")
    again = call("write_file", file_path="/skills/tides/SKILL.md", content=TIDES)
    script = (opened("tides"), opened("sky"), gone, call("tide", place="Brest"), again, "Done.")
    with ScriptedModel(*script) as model:
        result = agent_of(model, tmp_path).invoke({"messages": "Go"})

    both = ["tide", "moon", "planets"]
    assert added(model) == [[], ["tide"], both, both[1:], both[1:], [*both[1:], "tide"]]
    assert any("tide is not a valid tool" in message.text for message in result["messages"])


def test_pinning_opens_too(tmp_path: Path) -> None:
    with ScriptedModel(call("tide", place="Brest"), "Done.") as model:
        result = agent_of(model, tmp_path).invoke({"messages": "Go", "pinned_skills": ["tides"]})

    assert model.asked[0].tool_names[-1] == "tide"
    assert result["messages"][-2].text == "13 m in Brest"


def test_a_history_that_is_given_counts(tmp_path: Path) -> None:
    reading = opened("tides")
    read = ToolMessage("1\tDo it.", tool_call_id=reading.tool_calls[0]["id"])
    history = [HumanMessage("Go"), reading, read, AIMessage("Now?"), HumanMessage("Go on")]
    with ScriptedModel("Done.") as model:
        agent_of(model, tmp_path).invoke({"messages": history})

    assert model.asked[0].tool_names[-1] == "tide"


def test_failed_readings_and_other_files_open_nothing(tmp_path: Path) -> None:
    wanted = calls(
        ("read_file", {"file_path": "/skills/tides/README.md"}),
        ("read_file", {"file_path": "/skills/tides/../sky/SKILL.md"}),
        ("ls", {"path": "/skills/tides/SKILL.md"}),
    )
    with ScriptedModel(wanted, call("tide", place="Brest"), "Done.") as model:
        result = agent_of(model, tmp_path).invoke({"messages": "Go"})

    assert added(model) == [[], [], []]
    refused = result["messages"][-2]
    assert refused.text.startswith("Error: tide is not a valid tool, try one of [write_todos")
    assert refused.additional_kwargs["error_code"] == "not_supported"


def test_a_reading_that_fails_opens_nothing(tmp_path: Path) -> None:
    rule = FilesystemPermission(operations=["read"], paths=["/skills/tides/**"], mode="deny")
    with ScriptedModel(opened("tides"), "Done.") as model:
        result = agent_of(model, tmp_path, permissions=[rule]).invoke({"messages": "Go"})

    assert result["messages"][-2].status == "error"
    assert added(model) == [[], []]


def test_any_spelling_of_the_path_opens(tmp_path: Path) -> None:
    with ScriptedModel(call("read_file", file_path="skills//tides/./SKILL.md"), "Done.") as model:
        agent_of(model, tmp_path).invoke({"messages": "Go"})

    assert added(model)[-1] == ["tide"]


@pytest.mark.parametrize(
    ("opening", "wanted", "said"),
    [(opened("sky"), call("moon"), "clouds"), (opened("tides"), call("tide", town="Brest"), "place")],
    ids=["it raises", "its arguments are wrong"],
)
def test_a_failing_skill_tool_is_a_result(tmp_path: Path, opening: Any, wanted: Any, said: str) -> None:
    with ScriptedModel(opening, wanted, "Done.") as model:
        result = agent_of(model, tmp_path).invoke({"messages": "Go"})

    assert result["messages"][-2].status == "error"
    assert said in result["messages"][-2].text
    assert result["messages"][-2].additional_kwargs["error_code"] == "tool_failed"


@pytest.mark.filterwarnings("ignore:interrupt_on of the agent names 'tide'")
@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        ({"type": "approve"}, "13 m in Brest"),
        ({"type": "edit", "edited_action": {"name": "tide", "args": {"place": "Rye"}}}, "13 m in Rye"),
    ],
)
def test_a_person_is_asked_about_a_skill_tool(
    decision: Any, answer: str, call_mode: CallMode, tmp_path: Path
) -> None:
    with ScriptedModel(opened("tides"), call("tide", place="Brest"), "Done.") as model:
        agent = agent_of(model, tmp_path, interrupt_on={"tide": True}, checkpointer=InMemorySaver())
        waiting = call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        result = call_mode.invoke(agent, Command(resume={"decisions": [decision]}), THREAD)

    assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "tide"
    assert result["messages"][-2].text.endswith(answer)


def test_a_deferred_tool_is_shown_early(call_mode: CallMode, tmp_path: Path) -> None:
    later = tide.model_copy(update={"extras": {"defer_loading": True, "other": 1}})
    provider = {"type": "web_search", "name": "moon", "defer_loading": True}
    both = calls(*(("read_file", {"file_path": f"/skills/{name}/SKILL.md"}) for name in ("tides", "sky")))
    seen: list[list[Any]] = []

    class Listening(FilesystemMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append([each for each in request.tools if _name(each) in ("tide", "moon")])
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append([each for each in request.tools if _name(each) in ("tide", "moon")])
            return await handler(request)

    backend = sky_and_sea(tmp_path)
    skills = SkillsMiddleware(backend=backend, sources=["/skills"])
    with ScriptedModel(both, call("tide", place="Brest"), "Done.") as model:
        agent = create_agent(model, [later, provider], middleware=[skills, Listening(backend=backend)])
        result = call_mode.invoke(agent, {"messages": "Go"})

    assert [seen[0][0].extras, seen[0][1]] == [later.extras, provider]
    assert [seen[1][0].extras, seen[1][1]] == [{"other": 1}, {"type": "web_search", "name": "moon"}]
    assert [_name(each) for each in seen[2]] == ["tide", "moon"]
    assert result["messages"][-2].text == "13 m in Brest"


def _name(given: Any) -> str:
    return given["name"] if isinstance(given, dict) else given.name


def test_a_tool_that_is_there_anyway_stays_as_it_is(tmp_path: Path) -> None:
    with ScriptedModel(opened("tides"), "Done.") as model:
        agent = agent_of(model, tmp_path, tools=[tide])
        agent.invoke({"messages": "Go"})
    with ScriptedModel(opened("tides"), "Done.") as other:
        plain = create_deep_agent(other, [tide], backend=sky_and_sea(tmp_path), skills=["/skills"])
        plain.invoke({"messages": "Go"})

    assert other.asked[1].tool_names == other.asked[0].tool_names


class Asked:
    """A resolver that remembers what it was asked."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find(self, name: str, runtime: Any) -> Sequence[BaseTool]:
        assert runtime.context is None
        self.names.append(name)
        if name == "planets":
            raise OSError("the server is away")
        return {"tide": [tide, tide], "moon": [moon]}.get(name, [])

    async def afind(self, name: str, runtime: Any) -> Sequence[BaseTool]:
        return self.find(name, runtime)


def test_a_resolver_is_asked_once_a_run_for_each_name(call_mode: CallMode, tmp_path: Path) -> None:
    for method in ["find"] if call_mode.name == "sync" else ["find", "afind"]:
        asked = Asked()
        twice = calls(("tide", {"place": "Brest"}), ("tide", {"place": "Rye"}))
        with ScriptedModel(opened("tides"), twice, call("tide", place="Dover"), "Now?", "Done.") as model:
            agent = agent_of(model, tmp_path, getattr(asked, method), checkpointer=InMemorySaver())
            result = call_mode.invoke(agent, {"messages": "Go"}, THREAD)
            assert asked.names == ["tide"]
            call_mode.invoke(agent, {"messages": "Go"}, THREAD)

        assert asked.names == ["tide", "tide"]
        said = [message.text for message in result["messages"] if message.type == "tool"][1:]
        assert said == ["13 m in Brest", "13 m in Rye", "13 m in Dover"]
        assert added(model) == [[], *[["tide"]] * 4]


def test_a_resolver_that_fails_is_asked_again(tmp_path: Path, caplog: Any) -> None:
    asked = Asked()
    with ScriptedModel(opened("sky"), call("planets"), "Done.") as model:
        result = agent_of(model, tmp_path, asked.find).invoke({"messages": "Go"})

    assert added(model) == [[], ["moon"], ["moon"]]
    assert asked.names == ["moon", "planets", "planets"]
    assert "planets is not a valid tool" in result["messages"][-2].text
    assert "the server is away" in caplog.text


def test_a_tool_that_went_away_is_no_valid_tool(tmp_path: Path) -> None:
    there: list[BaseTool] = [tide]
    with ScriptedModel(opened("tides"), "Now?", call("tide", place="Brest"), "Done.") as model:
        agent = agent_of(model, tmp_path, lambda name, runtime: list(there), checkpointer=InMemorySaver())
        agent.invoke({"messages": "Go"}, THREAD)
        there.clear()
        result = agent.invoke({"messages": "Go"}, THREAD)

    assert added(model)[2:] == [[], []]
    assert "tide is not a valid tool" in result["messages"][-2].text


def test_an_awaitable_in_a_blocking_run_says_which_run_it_needs(tmp_path: Path) -> None:
    asked = Asked()
    with (
        ScriptedModel(opened("tides")) as model,
        pytest.raises(TypeError, match=r"'tide'.*ainvoke or astream"),
    ):
        agent_of(model, tmp_path, asked.afind).invoke({"messages": "Go"})


@pytest.mark.parametrize("answer", ["tide", tide, [planets], None])
def test_an_answer_that_is_no_list_of_tools_is_refused(answer: Any, tmp_path: Path) -> None:
    with ScriptedModel(opened("tides")) as model, pytest.raises(TypeError, match="resolver of skill tools"):
        agent_of(model, tmp_path, lambda name, runtime: answer).invoke({"messages": "Go"})


@pytest.mark.parametrize(
    ("tools", "error", "complaint"),
    [
        (tide, TypeError, "use a list"),
        ({"type": "web_search"}, TypeError, "use a list"),
        (7, TypeError, "got 7"),
        ([{"type": "web_search"}], TypeError, "must be a BaseTool or a function"),
        ([tide, tide], ValueError, "two skill tools are named 'tide'"),
    ],
)
def test_tools_that_cannot_be_are_refused_while_building(
    tools: Any, error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        SkillsMiddleware(backend=None, sources=["/s"], tools=tools)


def test_the_record_is_read_with_care() -> None:
    assert disclosed_skill_tool_names({}) == frozenset()
    assert disclosed_skill_tool_names({"_skill_tools_disclosed": ["x"]}) == frozenset()
    assert disclosed_skill_tool_names({"_skill_tools_disclosed": {"x": "x", 3: "y", "z": None}}) == {"x"}


def test_each_run_has_answers_of_its_own(tmp_path: Path) -> None:
    def named(name: str, runtime: Any) -> Sequence[BaseTool]:
        own = runtime.context["user"]
        return [tide.model_copy(update={"description": f"Tide for {own}."})]

    with ScriptedModel(opened("tides"), "Done.", opened("tides"), "Done.") as model:
        agent = agent_of(model, tmp_path, named, context_schema=dict)
        for user in ("ada", "ben"):
            agent.invoke({"messages": "Go"}, context={"user": user})

    told = [asked.tools[-1]["function"]["description"] for asked in model.asked]
    assert [told[1], told[3]] == ["Tide for ada.", "Tide for ben."]


def test_what_a_resolver_found_long_ago_is_asked_for_anew() -> None:
    asked = Asked()
    shelf = SkillToolSource(asked.find)
    runtime: Any = SimpleNamespace(context=None)
    for name in ["tide", *(f"absent-{at}" for at in range(255)), "tide"]:
        run(shelf.find([name], runtime, "one"))
    assert asked.names.count("tide") == 1
    for name in ["moon", "moon", "tide"]:
        run(shelf.find([name], runtime, "one"))

    assert (asked.names.count("moon"), asked.names.count("tide")) == (1, 2)
