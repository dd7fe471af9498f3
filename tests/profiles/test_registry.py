"""A model finds its profile by the name it was asked for by, or by what it tells about itself."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import FakeListChatModel

from deepagents import HarnessProfile, register_harness_profile
from deepagents.models import resolve_model
from deepagents.profiles.harness.harness_profiles import get_harness_profile, profile_for
from deepagents.testing import ScriptedModel


def registered(**suffixes: str) -> None:
    """Register profiles that are known by their suffixes; two underscores in a name are a colon."""
    for key, suffix in suffixes.items():
        register_harness_profile(key.replace("__", ":"), HarnessProfile(system_prompt_suffix=suffix))


def suffix_for(provider: str, model_name: str, spec: str | None = None) -> str | None:
    return profile_for(ScriptedModel(provider=provider, model_name=model_name), spec).system_prompt_suffix


@pytest.mark.parametrize("name", ["claude-sonnet-4-6", "anthropic:claude-sonnet-4-6"])
def test_a_real_model_finds_its_profile_by_a_full_or_a_bare_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")

    found = profile_for(resolve_model(name), name)

    assert found == get_harness_profile("anthropic:claude-sonnet-4-6")
    assert found != HarnessProfile()


def test_a_bare_name_that_is_the_key_of_a_provider_does_not_match() -> None:
    registered(mole="Mole.")

    assert suffix_for("burrow", "mole", "mole") is None
    assert suffix_for("mole", "any") == "Mole."


def test_the_name_that_was_given_counts_before_what_the_model_tells() -> None:
    registered(here__newt="Here.", there__newt="There.", here="Any here.")

    assert suffix_for("there", "newt", "here:newt") == "Here."
    assert suffix_for("there", "newt") == "There."
    assert suffix_for("there", "newt", "here:other") == "There."
    assert suffix_for("there", "other", "here:other") == "Any here."


def test_the_name_of_a_model_may_hold_colons() -> None:
    registered(otter__river__big="Big.", otter="Any.")

    assert suffix_for("otter", "river:big") == "Big."
    assert suffix_for("otter", "river:small") == "Any."
    assert suffix_for("", "otter:river:big") == "Big."
    assert suffix_for("", "otter:lake") == "Any."
    assert suffix_for("known", "otter:lake") is None


@pytest.mark.parametrize(("key", "provider"), [("azure_openai", "azure"), ("mistralai", "mistral")])
def test_a_provider_has_several_names(key: str, provider: str) -> None:
    registered(**{f"{key}__pike": "Pike."})

    assert suffix_for(provider, "pike") == "Pike."
    assert suffix_for("", "none", f"{key.replace('_', '-')}:pike") == "Pike."


def test_spellings_of_one_provider_add_up() -> None:
    register_harness_profile("azure_openai:eel", HarnessProfile(system_prompt_suffix="Eel."))
    register_harness_profile("Azure:eel", HarnessProfile(base_system_prompt="Base."))

    for name in ("azure_openai:eel", "azure:eel", "Azure-OpenAI:eel"):
        assert get_harness_profile(name) == HarnessProfile("Base.", "Eel.")


@pytest.mark.parametrize(
    "name",
    ["ray-4-5-20251001", "ray-4-5-2025-10-01", "ray-4-5@20251001", "ray-4-5-latest", "ray-4-5"],
)
def test_a_release_of_a_model_has_the_profile_of_the_model(name: str) -> None:
    register_harness_profile("sea:ray-4-5", HarnessProfile(base_system_prompt="Ray."))
    register_harness_profile("sea", HarnessProfile(system_prompt_suffix="Sea."))

    assert get_harness_profile(f"sea:{name}") == HarnessProfile("Ray.", "Sea.")
    assert profile_for(ScriptedModel(provider="sea", model_name=name)) == HarnessProfile("Ray.", "Sea.")


@pytest.mark.parametrize(
    "name",
    [
        *("skate-4", "skate-20251301", "skate-19991001", "skate-2025-1001", "skate-202510011", "skate-mini"),
        *("skate-20251001-v1:0", "us.skate-20251001", "skate:latest", "skate-latest-20251001"),
    ],
)
def test_what_only_looks_like_a_release_is_another_model(name: str) -> None:
    registered(reef__skate="Skate.")

    assert get_harness_profile("reef:skate") is not None
    assert get_harness_profile(f"reef:{name}") is None


def test_a_profile_for_one_release_stands_alone() -> None:
    register_harness_profile("cove:sole", HarnessProfile(system_prompt_suffix="Sole."))
    register_harness_profile("cove:sole-20251001", HarnessProfile(base_system_prompt="Release."))

    assert get_harness_profile("cove:sole-20251001") == HarnessProfile("Release.")
    assert get_harness_profile("cove:sole-20251002") == HarnessProfile(system_prompt_suffix="Sole.")


def test_what_matches_nothing_is_an_empty_profile_and_a_line_for_debugging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert profile_for(FakeListChatModel(responses=[])) == HarnessProfile()

    assert "No harness profile matched" in caplog.text
    assert not [each for each in caplog.records if each.levelno > logging.INFO]


@pytest.mark.parametrize("spec", ["", ":", "anthropic:", ":claude-sonnet-4-6", "nobody"])
def test_what_names_no_model_has_no_profile(spec: str) -> None:
    assert get_harness_profile(spec) is None


def test_a_profile_is_a_value() -> None:
    extra: Any = [AgentMiddleware()]
    first, second = (
        HarnessProfile(tool_description_overrides={"ls": "Look."}, extra_middleware=extra) for _ in range(2)
    )

    assert first == second
    assert len({first, second, HarnessProfile()}) == 2
