"""The profiles that come with the library."""

from __future__ import annotations

import re

import pytest

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.testing import Asked, ScriptedModel, call

HABITS = ["use_parallel_tool_calls", "investigate_before_answering", "tool_result_reflection"]
CODEX = ["gpt-5.1-codex", "gpt-5.2-codex", "gpt-5.3-codex"]


def first_request(provider: str, model_name: str) -> Asked:
    model = ScriptedModel("Done.", provider=provider, model_name=model_name)
    create_deep_agent(model, backend=StateBackend()).invoke({"messages": "Go"})
    return model.asked[0]


def sections(asked: Asked) -> list[str]:
    """Name the tagged sections of a prompt that are closed by their own tag."""
    return re.findall(r"^<(\w+)>$.+?^</\1>$", asked.system, re.MULTILINE | re.DOTALL)


def test_the_small_local_model_gets_few_tools_and_few_words() -> None:
    asked = first_request("local", "tiny")

    assert asked.tool_names == ["ls", "read_file", "write_file", "edit_file", "glob", "grep"]
    assert len(asked.system) < 600


def test_claude_is_told_of_habits() -> None:
    sonnet, haiku = (first_request("anthropic", f"claude-{name}") for name in ("sonnet-4-6", "haiku-4-5"))

    assert sections(sonnet) == HABITS
    assert sonnet.system == haiku.system


def test_opus_is_told_of_two_more() -> None:
    assert sections(first_request("anthropic", "claude-opus-4-7")) == [
        *HABITS,
        "tool_usage",
        "subagent_usage",
    ]


@pytest.mark.parametrize("model_name", CODEX)
def test_codex_is_told_to_act_and_has_one_plan(model_name: str) -> None:
    asked = first_request("openai", model_name)

    assert re.findall(r"^## .+", asked.system, re.MULTILINE) == [
        "## Codex-Specific Behavior",
        "## Parallel Tool Use",
        "## Plan Hygiene",
    ]
    assert [asked.tool_names.count(name) for name in ("write_todos", "read_todos")] == [1, 1]


@pytest.mark.parametrize(
    ("provider", "model_name"), [("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5"), ("azure", CODEX[0])]
)
def test_other_models_are_told_nothing_more(provider: str, model_name: str) -> None:
    assert first_request(provider, model_name).system == first_request("nobody", "none").system


def test_a_subagent_on_another_model_is_told_what_suits_that_model() -> None:
    main = ScriptedModel(
        call("task", subagent_type="helper", description="Go"),
        "Done.",
        provider="openai",
        model_name=CODEX[0],
    )
    helper = ScriptedModel("Helped.", provider="anthropic", model_name="claude-haiku-4-5")
    agent = create_deep_agent(
        main,
        subagents=[{"name": "helper", "description": "Helps.", "system_prompt": "Help.", "model": helper}],
    )

    agent.invoke({"messages": "Go"})

    assert sections(helper.asked[0]) == HABITS
    assert helper.asked[0].system.startswith("Help.\n\nYou are a deep agent.")
    assert "## Plan Hygiene" not in helper.asked[0].system
    assert sections(main.asked[0]) == []
