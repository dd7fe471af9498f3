"""A harness profile changes the agents around the models that it is registered for, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware

from deepagents import (
    GeneralPurposeSubagentProfile,
    HarnessProfile,
    create_deep_agent,
    register_harness_profile,
)
from deepagents.errors import ProfileError
from deepagents.testing import Asked, ScriptedModel, call
from deepagents.tools import FILE_TOOLS


def first_request(provider: str, model_name: str = "m", **options: Any) -> Asked:
    """Run one turn of an agent on a model of this provider and return what the model was asked."""
    model = ScriptedModel("Done.", provider=provider, model_name=model_name)
    create_deep_agent(model, **options).invoke({"messages": "Go"})
    return model.asked[0]


def description(asked: Asked, tool: str) -> str:
    return next(each["function"]["description"] for each in asked.tools if each["function"]["name"] == tool)


def test_a_profile_rewrites_the_prompt_around_the_callers_words() -> None:
    register_harness_profile("ant", HarnessProfile(base_system_prompt="Base.", system_prompt_suffix="Last."))

    assert first_request("ant", system_prompt="Mine.").system.startswith("Mine.\n\nBase.\n\nLast.")
    assert "Base." not in first_request("bee").system


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(
            ("extra_middleware", wrong)
            for wrong in (5, None, "Some", [5], [AgentMiddleware], AgentMiddleware)
        ),
        *(("general_purpose_subagent", wrong) for wrong in ({"enabled": False}, False)),
    ],
)
def test_what_a_profile_cannot_hold_is_refused_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must .*got ") as refused:
        HarnessProfile(**{name: wrong})
    assert repr(wrong[0] if isinstance(wrong, list) else wrong) in str(refused.value)


@pytest.mark.parametrize("wrong", [5, None, [5], AgentMiddleware()])
def test_a_factory_that_makes_no_middleware_is_named(wrong: Any) -> None:
    def offers() -> Any:
        return wrong

    for key, extra in (
        (f"bat-{type(wrong)}", offers),
        (f"bat-{type(wrong)}:big", [AgentMiddleware[Any, Any]()]),
    ):
        register_harness_profile(key, HarnessProfile(extra_middleware=extra))
        with pytest.raises(ProfileError, match=r"made by .*offers.* must return a list .* got "):
            first_request(f"bat-{type(wrong)}", "big")


def test_an_empty_base_prompt_leaves_nothing_between() -> None:
    register_harness_profile("asp", HarnessProfile(base_system_prompt="", system_prompt_suffix="Last."))

    assert first_request("asp", system_prompt="Mine.").system.startswith("Mine.\n\nLast.")


def test_tools_are_described_anew_or_left_out() -> None:
    def sing(song: str) -> str:
        """Sing."""
        return song

    register_harness_profile(
        "elk",
        HarnessProfile(
            tool_description_overrides={"ls": "Look.", "task": "Ask."},
            excluded_tools=frozenset({"glob", "sing"}),
        ),
    )
    asked = first_request("elk", tools=[sing])

    assert description(asked, "ls") == "Look."
    assert description(asked, "task") == "Ask."
    assert not {"glob", "sing"} & set(asked.tool_names)


def test_tools_for_plans_and_tasks_are_described_anew_too() -> None:
    words = {"read_todos": "Look at the plan.", "start_async_task": "Send one.", "wait_async_task": "Wait."}
    worker: Any = {"name": "worker", "description": "Works.", "background": True}
    register_harness_profile("auk", HarnessProfile(tool_description_overrides=words))
    asked = first_request("auk", subagents=[worker])
    register_harness_profile("asp", HarnessProfile(excluded_tools=frozenset({"start_async_task"})))

    assert {name: description(asked, name) for name in words} == words
    assert "start_async_task" in asked.system
    assert "start_async_task" not in first_request("asp", subagents=[worker]).system


def test_tools_in_the_form_of_a_dict_are_described_anew_or_left_out() -> None:
    def written(name: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "description": "Old.", "parameters": {}}}

    given = [
        written("sail"),
        written("sink"),
        {"type": "web_search", "name": "search", "description": "Old."},
    ]
    register_harness_profile(
        "eel",
        HarnessProfile(
            tool_description_overrides={
                "sail": "New.",
                "search": "New.",
                "write_todos": "Plan.",
                "none": "-",
            },
            excluded_tools=frozenset({"sink"}),
        ),
    )
    model = ScriptedModel("Done.", provider="eel")
    create_deep_agent(model, tools=given).invoke({"messages": "Go"})
    offered = {tool.get("name") or tool["function"]["name"]: tool for tool in model.asked[0].tools}

    assert offered["sail"]["function"]["description"] == "New."
    assert offered["search"]["description"] == "New."
    assert offered["write_todos"]["function"]["description"] == "Plan."
    assert "sink" not in offered
    assert "New." not in str(given)


def test_a_call_of_a_tool_that_is_left_out_is_answered_with_an_error() -> None:
    register_harness_profile("emu", HarnessProfile(excluded_tools=frozenset({"ls"})))
    model = ScriptedModel(call("ls", path="/"), "Done.", provider="emu")

    result = create_deep_agent(model).invoke({"messages": "Go"})

    answer = result["messages"][-2]
    assert (answer.status, "ls is not available" in answer.text) == ("error", True)


def test_tools_that_are_left_out_are_not_spoken_of() -> None:
    names = ("write_todos", "task", *(spec.name for spec in FILE_TOOLS))
    register_harness_profile("fox", HarnessProfile(base_system_prompt="", excluded_tools=frozenset(names)))
    register_harness_profile("gnu", HarnessProfile(base_system_prompt="", excluded_tools=frozenset(["ls"])))

    assert first_request("fox", system_prompt="Mine.").system == "Mine."
    assert all(word in first_request("gnu").system for word in ("write_todos", "filesystem", "with task"))


def test_a_factory_makes_middleware_once_for_each_stack() -> None:
    made: list[AgentMiddleware[Any, Any, Any]] = []

    def extras() -> list[AgentMiddleware[Any, Any, Any]]:
        made.append(AgentMiddleware())
        return made[-1:]

    register_harness_profile("hen", HarnessProfile(extra_middleware=extras))
    delegate = call("task", description="Go", subagent_type="child")
    with ScriptedModel(delegate, "Did.", delegate, "Did.", "Done.", provider="hen") as model:
        agent = create_deep_agent(model, subagents=[{"name": "child", "description": "d"}])
        at_first = len(made)
        agent.invoke({"messages": "Go"})

    assert at_first == len(made) == 3


def test_other_braces_in_the_description_of_task_are_words() -> None:
    text = "Use {json} and {}. {available_agents}"
    register_harness_profile("ewe", HarnessProfile(tool_description_overrides={"task": text}))

    assert description(first_request("ewe"), "task").startswith("Use {json} and {}. - general-purpose: ")


def test_the_general_purpose_subagent_is_reworded_or_switched_off() -> None:
    register_harness_profile(
        "gnu", HarnessProfile(general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=False))
    )
    register_harness_profile(
        "hen",
        HarnessProfile(
            general_purpose_subagent=GeneralPurposeSubagentProfile(
                description="Does it.", system_prompt="Do."
            )
        ),
    )
    hen = ScriptedModel(
        call("task", subagent_type="general-purpose", description="Go"), "Did.", "Done.", provider="hen"
    )
    create_deep_agent(hen).invoke({"messages": "Go"})

    assert "task" not in first_request("gnu").tool_names
    assert "- general-purpose: Does it." in description(hen.asked[0], "task")
    assert hen.asked[1].system.startswith("Do.")


@pytest.mark.parametrize("key", ["", " ibis", "ibis ", ":model", "ibis:", "ibis: model"])
def test_a_key_that_names_nothing_is_refused(key: str) -> None:
    with pytest.raises(ProfileError, match="a profile key must") as refused:
        register_harness_profile(key, HarnessProfile())
    assert repr(key) in str(refused.value)


def test_a_profile_cannot_be_changed_through_what_it_was_made_of() -> None:
    words = {"ls": "Look."}
    profile = HarnessProfile(tool_description_overrides=words)
    words["ls"] = "Changed."

    assert dict(profile.tool_description_overrides) == {"ls": "Look."}
