"""Each middleware works by itself in an agent made with LangChain's `create_agent`."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware import TodoListMiddleware as LangChainTodoList
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command

from deepagents import CompiledSubAgent, FilesystemMiddleware, SubAgent, SubAgentMiddleware
from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import ExecuteResponse, SandboxBackendProtocol
from deepagents.errors import ConfigError
from deepagents.middleware import TodoListMiddleware
from deepagents.middleware.patch_tool_calls.middleware import PatchToolCallsMiddleware
from deepagents.middleware.subagents import TASK_SYSTEM_PROMPT
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.tools.names import FILE_TOOLS

QUESTION = {"messages": [{"role": "user", "content": "Will it rain?"}]}
PLAN = [{"content": "look up", "status": "pending"}]


@tool
def sky(city: str) -> str:
    """Look at the sky."""
    return f"grey over {city}"


def hand_to(name: str) -> AIMessage:
    return call("task", subagent_type=name, description="Will it rain?")


def older(**arguments: Any) -> SubAgentMiddleware:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return SubAgentMiddleware(**arguments)


@pytest.mark.parametrize("todos", [TodoListMiddleware, LangChainTodoList])
def test_planning_with_words_of_the_callers(call_mode: CallMode, todos: Any) -> None:
    with ScriptedModel(call("write_todos", todos=PLAN), "Planned.") as model:
        agent = create_agent(model=model, middleware=[todos(system_prompt="Plan with write_todos.")])
        result = call_mode.invoke(agent, QUESTION)

    assert "Plan with write_todos." in model.asked[0].system
    assert result["todos"] == PLAN


def test_our_planning_can_be_read_back(call_mode: CallMode) -> None:
    with ScriptedModel(call("write_todos", todos=PLAN), call("read_todos"), "Planned.") as model:
        result = call_mode.invoke(create_agent(model, middleware=[TodoListMiddleware()]), QUESTION)

    assert result["messages"][-2].text == "[ ] look up"


def test_files_without_any_argument(call_mode: CallMode) -> None:
    with ScriptedModel(call("write_file", file_path="/a.txt", content="A"), "Done.") as model:
        result = call_mode.invoke(create_agent(model, middleware=[FilesystemMiddleware()]), QUESTION)

    assert model.asked[0].tool_names == FILE_TOOLS
    assert result["files"]["/a.txt"]["content"] == "A"


def test_files_with_words_of_the_callers(call_mode: CallMode) -> None:
    files = FilesystemMiddleware(
        backend=None,
        system_prompt="Write when asked.",
        custom_tool_descriptions={"ls": "Look around.", "read_file": "Read one file."},
    )
    with ScriptedModel("Yes.") as model:
        call_mode.invoke(create_agent(model=model, middleware=[files]), QUESTION)

    described = {each["function"]["name"]: each["function"]["description"] for each in model.asked[0].tools}
    assert (described["ls"], described["read_file"]) == ("Look around.", "Read one file.")
    assert model.asked[0].system == "Write when asked."


class Shed(FilesystemBackend, SandboxBackendProtocol):
    """A place of a caller's own that runs commands."""

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return ExecuteResponse(output=f"ran {command}", exit_code=0)


def test_a_sandbox_of_the_callers_brings_execute(call_mode: CallMode, tmp_path: Any) -> None:
    with ScriptedModel(call("execute", command="uptime"), "Long.") as model:
        agent = create_agent(model, middleware=[FilesystemMiddleware(backend=Shed(root_dir=tmp_path))])
        result = call_mode.invoke(agent, QUESTION)

    assert "execute" in model.asked[0].tool_names
    assert result["messages"][-2].text.startswith("ran uptime")


def test_large_results_move_to_a_file(call_mode: CallMode) -> None:
    @tool
    def recite() -> str:
        """Recite."""
        return "\n".join(f"line {number}" for number in range(1000))

    with ScriptedModel(call("recite"), "Long.") as model:
        files = FilesystemMiddleware(tool_token_limit_before_evict=100)
        result = call_mode.invoke(create_agent(model, tools=[recite], middleware=[files]), QUESTION)

    [(path, kept)] = result["files"].items()
    assert path in result["messages"][-2].text
    assert len(kept["content"].splitlines()) == 1000


def test_subagents_with_defaults_for_all(call_mode: CallMode) -> None:
    own = ScriptedModel(call("sky", city="Oslo"), "Rain.")
    weather: SubAgent = {
        "name": "weather",
        "description": "Knows the weather",
        "system_prompt": "Look at the sky.",
        "tools": [sky],
        "model": own,
        "middleware": [],
    }
    subagents = older(default_model=ScriptedModel(), default_tools=[], subagents=[weather])
    with ScriptedModel(hand_to("weather"), "Take a coat.") as model:
        result = call_mode.invoke(create_agent(model=model, middleware=[subagents]), QUESTION)

    assert own.asked[0].tool_names == ["sky"]
    assert own.asked[0].system == "Look at the sky."
    assert result["messages"][-2].text == "Rain."
    assert model.asked[0].system == TASK_SYSTEM_PROMPT


def test_the_general_purpose_agent_of_the_defaults(call_mode: CallMode) -> None:
    default = ScriptedModel(call("write_todos", todos=PLAN), "Rain.")
    subagents = older(default_model=default, default_tools=[sky], default_middleware=[TodoListMiddleware()])
    with ScriptedModel(hand_to("general-purpose"), "Take a coat.") as model:
        result = call_mode.invoke(create_agent(model, middleware=[subagents]), QUESTION)

    assert {*default.asked[0].tool_names} == {"sky", "write_todos", "read_todos"}
    assert "only your last message" in default.asked[0].system.lower()
    assert result["messages"][-2].text == "Rain."
    assert "todos" not in result


def test_defaults_fill_only_what_a_spec_leaves_open(call_mode: CallMode) -> None:
    default = ScriptedModel("from the default model", "again")
    subagents = older(
        default_model=default,
        default_tools=[sky],
        subagents=[
            {"name": "open", "description": "d", "model": None},
            {"name": "closed", "description": "d", "tools": []},
        ],
        general_purpose_agent=False,
    )
    with ScriptedModel(hand_to("open"), hand_to("closed"), "Done.") as model:
        call_mode.invoke(create_agent(model, middleware=[subagents]), QUESTION)

    assert subagents.subagent_names == {"open", "closed"}
    assert [asked.tool_names for asked in default.asked] == [["sky"], []]


def test_default_tools_alone_fill_a_spec_with_a_model(call_mode: CallMode) -> None:
    own = ScriptedModel("Rain.")
    spec: SubAgent = {"name": "weather", "description": "d", "model": own}
    subagents = older(default_tools=[sky], subagents=[spec], general_purpose_agent=False)
    with ScriptedModel(hand_to("weather"), "Done.") as model:
        call_mode.invoke(create_agent(model, middleware=[subagents]), QUESTION)

    assert own.asked[0].tool_names == ["sky"]


def test_default_rules_make_subagents_wait(call_mode: CallMode) -> None:
    config: Any = {"configurable": {"thread_id": "1"}}
    default = ScriptedModel(call("sky", city="Oslo"), "Rain.")
    subagents = older(default_model=default, default_tools=[sky], default_interrupt_on={"sky": True})
    with ScriptedModel(hand_to("general-purpose"), "Done.") as model:
        agent = create_agent(model, middleware=[subagents], checkpointer=MemorySaver())
        waiting = call_mode.invoke(agent, QUESTION, config)
        result = call_mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), config)

    assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "sky"
    assert result["messages"][-2].text == "Rain."


def test_a_graph_of_the_callers_as_subagent(call_mode: CallMode) -> None:
    class Weather(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    def answer(state: Weather) -> dict[str, Any]:
        return {"messages": [AIMessage(f"asked {state['messages'][-1].text} - yes")]}

    workflow = StateGraph(Weather)
    workflow.add_node("answer", answer)
    workflow.add_edge(START, "answer")
    workflow.add_edge("answer", END)
    compiled = CompiledSubAgent(name="weather", description="Knows", runnable=workflow.compile())
    subagents = older(default_model=ScriptedModel(), default_tools=[], subagents=[compiled])
    with ScriptedModel(hand_to("weather"), "Take a coat.") as model:
        result = call_mode.invoke(create_agent(model=model, middleware=[subagents]), QUESTION)

    assert subagents.subagent_names == {"general-purpose", "weather"}
    assert result["messages"][-2].text == "asked Will it rain? - yes"


def test_complete_specs_need_no_defaults(call_mode: CallMode) -> None:
    own = ScriptedModel("Rain.")
    spec: SubAgent = {"name": "weather", "description": "d", "model": own, "tools": []}
    subagents = SubAgentMiddleware(
        subagents=[spec], system_prompt="Delegate.", task_description="To: {available_agents}"
    )
    with ScriptedModel(hand_to("weather"), "Done.") as model:
        call_mode.invoke(create_agent(model, middleware=[subagents]), QUESTION)

    assert model.asked[0].system == "Delegate."
    assert model.asked[0].tools[0]["function"]["description"] == "To: - weather: d"


def test_no_prompt_means_no_part_of_the_system_prompt(call_mode: CallMode) -> None:
    spec: SubAgent = {"name": "weather", "description": "d", "model": ScriptedModel(), "tools": []}
    with ScriptedModel("Yes.") as model:
        agent = create_agent(model, middleware=[SubAgentMiddleware(subagents=[spec], system_prompt=None)])
        call_mode.invoke(agent, QUESTION)

    assert model.asked[0].system == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "At least one subagent"),
        ({"subagents": [{"name": "a", "description": "d", "tools": []}]}, "must specify 'model'"),
        (
            {"subagents": [{"name": "a", "description": "d", "model": None, "tools": []}]},
            "must specify 'model'",
        ),
        (
            {"subagents": [{"name": "a", "description": "d", "model": ScriptedModel()}]},
            "must specify 'tools'",
        ),
        ({"general_purpose_agent": True}, "needs default_model"),
        ({"default_model": "nobody:none"}, "nobody:none"),
        ({"default_model": ScriptedModel(), "general_purpose_agent": False}, "At least one subagent"),
    ],
)
def test_what_is_missing_is_said_while_building(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        older(**arguments)


def test_an_argument_that_no_version_knew() -> None:
    unknown: Any = {"default_agents": []}
    with pytest.raises(TypeError, match="unexpected keyword argument.*default_agents"):
        SubAgentMiddleware(**unknown)


def test_rules_given_twice_in_a_spec_are_refused() -> None:
    approval = HumanInTheLoopMiddleware(interrupt_on={"sky": True})
    spec: SubAgent = {
        "name": "weather",
        "description": "d",
        "model": ScriptedModel(),
        "tools": [sky],
        "middleware": [approval],
        "interrupt_on": {"sky": True},
    }
    with pytest.raises(ConfigError, match="'weather' has interrupt_on and a HumanInTheLoopMiddleware"):
        SubAgentMiddleware(subagents=[spec])


def test_a_history_with_an_unanswered_call_is_repaired(call_mode: CallMode) -> None:
    cut = [{"role": "user", "content": "Go"}, call("sky", city="Oslo"), {"role": "user", "content": "Well?"}]
    with ScriptedModel("Sorry.") as model:
        agent = create_agent(model, tools=[sky], middleware=[PatchToolCallsMiddleware()])
        result = call_mode.invoke(agent, {"messages": cut})

    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "human", "ai"]
    assert result["messages"][2].status == "error"
