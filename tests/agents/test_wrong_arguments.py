"""What is checked where a person enters: each message names the value and the way out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

import deepagents
from deepagents import (
    FilesystemMiddleware,
    FilesystemPermission,
    SubAgentMiddleware,
    create_deep_agent,
)
from deepagents.backends import FilesystemBackend
from deepagents.errors import ConfigError, DeepAgentsWarning, MissingKey
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": "Go"}


def look_up(question: str) -> str:
    """Look something up."""
    return question


def create(*script: Any, **given: Any) -> Any:
    return create_deep_agent(given.pop("model", None) or ScriptedModel(*(script or ("Hi.",))), **given)


class Weather(BaseModel):
    degrees: float


class _Busy(ConnectionError):
    response = SimpleNamespace(headers={"retry-after": "0"})


SHOWN = {"name": "x", "description": "d"}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one tool": ({"tools": look_up}, r"tools must be a list, got <function .*write tools=\[look_up\]"),
    "the name of a tool": ({"tools": "ls"}, r"tools must be a list, got 'ls'"),
    "names of tools": ({"tools": ["ls"]}, r"tools holds 'ls', which is not a tool; .*built in"),
    "no tool": ({"tools": [3]}, r"tools holds 3, which is not a tool"),
    "a list as prompt": ({"system_prompt": ["Be brief."]}, r"system_prompt must be .*got \['Be brief.'\]"),
    "limits as a dict": ({"limits": {"tokens": 5}}, r"write limits=Limits\(tokens=5\)"),
    "one middleware": (
        {"middleware": FilesystemMiddleware()},
        r"write middleware=\[FilesystemMiddleware\(...\)",
    ),
    "a class of middleware": (
        {"middleware": [FilesystemMiddleware]},
        r"the class .*FilesystemMiddleware\(...\)",
    ),
    "one subagent": ({"subagents": SHOWN}, r"subagents must be a list, .*write subagents=\[\{"),
    "a class as backend": ({"backend": FilesystemBackend}, r"the class .*FilesystemBackend\(root_dir=...\)"),
    "a path as backend": ({"backend": "/tmp"}, r"backend must be a BackendProtocol, got '/tmp'"),
    "a path as rule": ({"permissions": "/a/**"}, r"permissions must be a list, got '/a/\*\*'"),
    "one skill": ({"skills": "/skills"}, r"'/skills'; write \['/skills'\]"),
    "one memory": ({"memory": "/AGENTS.md"}, r"'/AGENTS.md'"),
    "a number as name": ({"name": 3}, r"name must be a string, got 3"),
    "a key of an approval": (
        {"interrupt_on": {"write_file": {"allow_accept": True}}},
        r"allowed_decisions of 'write_file' must be some of .*got None; it has no key 'allow_accept'",
    ),
    "an approval without decisions": (
        {"interrupt_on": {"write_file": {"remember": True}}},
        r"allowed_decisions of 'write_file' must be some of .*got None$",
    ),
    "an instance as response_format": (
        {"response_format": Weather(degrees=1)},
        r"response_format is an instance, Weather\(degrees=1.*; give the class: response_format=Weather",
    ),
    "a class as model": (
        {"model": ScriptedModel},
        r"the class ScriptedModel; make one: ScriptedModel\(...\)",
    ),
    "a misspelt provider": ({"model": "antropic:claude"}, r"did you mean 'anthropic'\?"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=list(WRONG))
def test_a_wrong_value_is_named_with_the_way_out(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, TypeError), match=message):
        create(**dict(given))


def test_a_tool_that_no_schema_describes_is_named(call_mode: CallMode) -> None:
    def ring(bell: Callable[[int], int]) -> str:
        """Ring."""
        return str(bell)

    with pytest.raises(ConfigError, match="no JSON schema describes an argument of the tool 'ring'"):
        call_mode.invoke(create(tools=[look_up, ring]), GO)


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(
        ConfigError, match=r"root_dir must be a directory, got '.*notes.txt', which is a file"
    ):
        create(backend=FilesystemBackend(root_dir=tmp_path / "notes.txt", virtual_mode=True))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("instructions", "'instructions'; write system_prompt"),
        ("max_tokens", "'max_tokens'; .*init_chat_model|'max_tokens'; .*chat model"),
        ("sub_agents", "'sub_agents'; did you mean 'subagents'"),
        ("interrupts", "'interrupts'; did you mean 'interrupt_on'"),
    ],
)
def test_an_unknown_parameter_is_named_with_the_nearest_one(wrong: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        create(**{wrong: "x"})


@pytest.mark.parametrize("given", ["hi", ["hi"], [("user", "hi")]])
def test_an_input_that_is_no_state_is_refused_with_the_form(call_mode: CallMode, given: Any) -> None:
    with pytest.raises(TypeError, match=r"invoke\(\{\"messages\": "):
        call_mode.invoke(create(), given)
    with pytest.raises(TypeError, match=r"\{\"messages\": "):
        call_mode.stream(create(), given)


def test_public_names_are_listed() -> None:
    assert set(deepagents.__all__) <= set(dir(deepagents))
    assert not [name for name in dir(deepagents) if name.startswith("_") and not name.startswith("__")]


def test_a_root_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=f"root_dir {str(tmp_path / 'none')!r} does not exist"):
        create(backend=FilesystemBackend(root_dir=tmp_path / "none", virtual_mode=True))


def test_a_directory_of_skills_that_is_not_there_is_said(tmp_path: Path) -> None:
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    with pytest.warns(UserWarning, match=r"skills directory '/skills' does not exist"):
        create(backend=backend, skills=["/skills"])
    (tmp_path / "skills").mkdir()
    create(backend=backend, skills=["/skills"])


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic:claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("gpt-5", "OPENAI_API_KEY"),
    ],
)
def test_an_agent_without_the_key_of_its_model_is_made_and_says_so_when_it_is_asked(
    call_mode: CallMode, name: str, variable: str
) -> None:
    with pytest.warns(DeepAgentsWarning, match=f"^{variable} is not set, and .* needs it"):
        agent = create_deep_agent(name, tools=[], subagents=[], model_retries=3)

    with pytest.raises(MissingKey, match=f"^{variable} is not set, and .* needs it") as missing:
        call_mode.invoke(agent, {"messages": "Go"})
    assert missing.value.model in name


def test_a_model_without_its_key_is_passed_over_for_one_that_has_its_own() -> None:
    model = ScriptedModel("Fine.")
    with pytest.warns(DeepAgentsWarning, match="OPENAI_API_KEY"):
        agent = create_deep_agent("openai:gpt-5", fallback_models=[model])

    assert agent.invoke({"messages": "Go"})["messages"][-1].text == "Fine."


@pytest.mark.parametrize("retries", ["", "2"])
def test_a_variable_says_how_often_a_model_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, retries: str
) -> None:
    monkeypatch.setenv("DEEPAGENTS_MODEL_RETRIES", retries)
    model = ScriptedModel(*[_Busy("Busy.")] * 2, "Here I am.")
    agent = create_deep_agent(model)

    if retries:
        assert agent.invoke(GO)["messages"][-1].text == "Here I am."
    else:
        with pytest.raises(_Busy):
            agent.invoke(GO)


def test_a_variable_that_holds_no_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPAGENTS_MODEL_RETRIES", "many")

    with pytest.raises(ConfigError, match="DEEPAGENTS_MODEL_RETRIES must be a whole number of 0 or more"):
        create()


def test_a_script_in_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match=r"ScriptedModel\(\*"):
        ScriptedModel([call("ls", path="/"), "Done."])  # type: ignore[arg-type]


# Names in interrupt_on


def test_a_misspelt_tool_that_should_wait_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(
        ConfigError, match="interrupt_on of the agent names 'write_fiel'.*did you mean 'write_file'"
    ):
        create(interrupt_on={"write_fiel": True})
    worker = {"name": "w", "description": "d", "interrupt_on": {"look_pu": True}}
    with pytest.raises(ConfigError, match="subagent 'w'.*'look_pu'.*did you mean 'look_up'"):
        create(tools=[look_up], subagents=[worker])


def test_a_tool_that_can_still_come_is_logged_and_a_misspelt_one_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Late(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request)

    with caplog.at_level("INFO", logger="deepagents"):
        create(interrupt_on={"from_mcp": True}, middleware=[Late()])
    assert "interrupt_on of the agent names 'from_mcp', and there is no tool of that name yet" in caplog.text
    with pytest.warns(DeepAgentsWarning, match="names 'write_fiel'.* yet; did you mean 'write_file'"):
        create(interrupt_on={"write_fiel": True}, middleware=[Late()])


def test_tools_of_the_library_and_of_subagents_may_wait() -> None:
    worker = {"name": "w", "description": "d", "tools": [look_up]}
    create(
        interrupt_on={"look_up": True, "execute": True, "task": True, "write_todos": True}, subagents=[worker]
    )


# A caller's own middleware of the same name


def subagents_of_the_caller() -> SubAgentMiddleware:
    worker: Any = {"name": "mine", "description": "d", "model": ScriptedModel("Mine."), "tools": []}
    return SubAgentMiddleware(subagents=[worker])


def test_the_callers_own_subagents_take_the_place_of_those_given(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(call("task", description="Go", subagent_type="mine"), "Done.")
    other: Any = {"name": "other", "description": "d"}
    agent = create_deep_agent(model, subagents=[other], middleware=[subagents_of_the_caller()])

    assert "SubAgentMiddleware of its own, so subagents= has no effect there for 'other'" in caplog.text
    assert agent.invoke(GO)["messages"][-2].text == "Mine."


def test_the_callers_own_approval_takes_the_place_of_interrupt_on() -> None:
    own: Any = HumanInTheLoopMiddleware({"look_up": True})
    model = ScriptedModel(call("ls", path="/"), call("look_up", question="x"), "Done.")
    with pytest.warns(UserWarning, match="HumanInTheLoopMiddleware.*'ls'") as warned:
        agent = create_deep_agent(
            model, tools=[look_up], middleware=[own], interrupt_on={"ls": True}, checkpointer=InMemorySaver()
        )

    assert len(warned) == 1
    asked = agent.invoke(GO, THREAD)["__interrupt__"]
    assert asked[0].value["action_requests"][0]["name"] == "look_up"


def test_rules_that_ask_stay_with_the_callers_own_approval() -> None:
    rules = [FilesystemPermission(operations=["write"], paths=["/plans/**"], mode="interrupt")]
    own: Any = HumanInTheLoopMiddleware({"look_up": True})
    model = ScriptedModel(call("write_file", file_path="/plans/a", content="x"), "Done.")
    with pytest.warns(UserWarning, match="HumanInTheLoopMiddleware"):
        agent = create_deep_agent(
            model,
            tools=[look_up],
            middleware=[own],
            interrupt_on={"ls": True},
            permissions=rules,
            checkpointer=InMemorySaver(),
        )

    assert agent.invoke(GO, THREAD)["__interrupt__"]
