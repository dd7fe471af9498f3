"""What a profile leaves out must be something, one thing, and no safeguard; what an agent may lack counts."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain.agents.middleware import TodoListMiddleware as LangChainTodoList

from deepagents import (
    FilesystemPermission,
    HarnessProfile,
    MemoryMiddleware,
    create_deep_agent,
    register_harness_profile,
)
from deepagents.errors import ProfileError
from deepagents.limits import Limits
from deepagents.middleware.todos import TodoListMiddleware
from deepagents.testing import Asked, ScriptedModel


class Extra(AgentMiddleware[Any, Any]):
    """Stands in an agent only when it is brought."""


class Other(AgentMiddleware[Any, Any]):
    """Goes by the name of another."""

    @property
    def name(self) -> str:
        return "Extra"


def built(provider: str, excluded: Any, extra: Any = (), **options: Any) -> Asked:
    """Register a profile that excludes this, run an agent once and return what its model was asked."""
    profile = HarnessProfile(excluded_middleware=frozenset([excluded]), extra_middleware=extra)
    register_harness_profile(provider, profile)
    model = ScriptedModel("Done.", provider=provider)
    create_deep_agent(model, **options).invoke({"messages": "Go"})
    return model.asked[0]


@pytest.mark.parametrize("excluded", ["Extra", Extra])
def test_what_matches_nothing_is_refused_and_what_there_is_named(excluded: Any) -> None:
    with pytest.raises(ProfileError, match=r"matched no middleware of the agent.*FilesystemMiddleware"):
        built(f"none-{excluded!r}", excluded)


@pytest.mark.parametrize("excluded", ["Extra", Extra])
def test_what_a_caller_brings_is_left_out(excluded: Any) -> None:
    class Louder(Other):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return pytest.fail("was not left out")

    own = Louder() if excluded == "Extra" else Extra()

    assert built(f"own-{excluded!r}", excluded, middleware=[own])


@pytest.mark.parametrize(
    "excluded", ["MemoryMiddleware", MemoryMiddleware, "HumanInTheLoopMiddleware", "SkillsMiddleware"]
)
def test_what_an_agent_only_sometimes_has_counts_as_matched(excluded: Any) -> None:
    helper: Any = {"name": "helper", "description": "Helps.", "system_prompt": "Help."}

    assert built(f"sometimes-{excluded!r}", excluded, subagents=[helper])


@pytest.mark.parametrize("excluded", [LangChainTodoList, TodoListMiddleware, "TodoListMiddleware"])
def test_the_class_that_the_library_stands_in_for_is_left_out_with_its_own(excluded: Any) -> None:
    assert "write_todos" not in built(f"todo-{excluded!r}", excluded).tool_names


def test_a_subclass_that_a_caller_brings_stays_when_the_class_is_left_out() -> None:
    class Mine(LangChainTodoList[Any, Any]):
        @property
        def name(self) -> str:
            return "TodoListMiddleware"

    assert "write_todos" in built("stays", LangChainTodoList, middleware=[Mine()]).tool_names
    assert "write_todos" not in built("goes", "TodoListMiddleware", middleware=[Mine()]).tool_names


def test_a_name_that_means_two_classes_is_refused() -> None:
    with pytest.raises(ProfileError, match=r"matched multiple distinct.*\['Extra', 'Other'\]"):
        built("two", "Extra", extra=[Extra(), Other()])


def test_exclusion_wins_over_the_extras_of_the_same_profile() -> None:
    assert built("itself", Extra, extra=[Extra()])


@pytest.mark.parametrize("excluded", ["HumanInTheLoopMiddleware", HumanInTheLoopMiddleware])
@pytest.mark.parametrize(
    "options",
    [
        {"interrupt_on": {"ls": True}},
        {"middleware": [HumanInTheLoopMiddleware(interrupt_on={"ls": True})]},
        {"permissions": [FilesystemPermission(operations=["write"], paths=["/**"], mode="interrupt")]},
    ],
)
def test_a_safeguard_that_was_asked_for_is_not_left_out(excluded: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ProfileError, match="would drop a safeguard that the agent was given"):
        built(f"safe-{excluded!r}-{[*options]}", excluded, **options)


def test_limits_that_were_asked_for_are_not_left_out() -> None:
    with pytest.raises(ProfileError, match="would drop a safeguard"):
        built("boundless", "LimitsMiddleware", limits=Limits(model_calls=9))
    assert built("never-bounded", "LimitsMiddleware")


def test_a_subagent_is_held_to_the_profile_of_its_own_model_at_once() -> None:
    register_harness_profile("picky", HarnessProfile(excluded_middleware=frozenset({"Extra"})))
    helper: Any = {"name": "helper", "description": "Helps.", "model": ScriptedModel(provider="picky")}

    with pytest.raises(ProfileError, match="matched no middleware of subagent 'helper'"):
        create_deep_agent(ScriptedModel(), subagents=[helper])
    helper["middleware"] = [Extra()]
    create_deep_agent(ScriptedModel(), subagents=[helper])


@pytest.mark.parametrize(
    ("excluded", "why"),
    [
        ("", "non-empty"),
        (" ", "non-empty"),
        ("langchain.agents:Some", "not currently supported"),
        ("_Private", "cannot start with '_'"),
    ],
)
def test_a_name_that_can_name_nothing_is_refused(excluded: str, why: str) -> None:
    with pytest.raises(ProfileError, match=why) as refused:
        HarnessProfile(excluded_middleware=frozenset({excluded}))
    assert repr(excluded) in str(refused.value)


def test_all_required_middleware_is_named_at_once() -> None:
    with pytest.raises(ProfileError, match=r"\['FilesystemMiddleware', 'SubAgentMiddleware'\].*scaffolding"):
        HarnessProfile(excluded_middleware=frozenset({"FilesystemMiddleware", "SubAgentMiddleware"}))


@pytest.mark.parametrize("wrong", ["Extra", {5}, 5])
def test_exclusions_are_a_set_of_names_or_classes(wrong: Any) -> None:
    with pytest.raises(TypeError, match="excluded_middleware must"):
        HarnessProfile(excluded_middleware=wrong)
