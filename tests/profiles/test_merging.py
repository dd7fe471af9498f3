"""Of two profiles for one model, the nearer one wins field by field, exclusions add up."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import AgentMiddleware

from deepagents import GeneralPurposeSubagentProfile, HarnessProfile, register_harness_profile
from deepagents.profiles.harness.harness_profiles import get_harness_profile


class One(AgentMiddleware[Any, Any]):
    pass


class Two(AgentMiddleware[Any, Any]):
    pass


class Three(AgentMiddleware[Any, Any]):
    pass


def laid_over(base: HarnessProfile, override: HarnessProfile, provider: str) -> HarnessProfile:
    register_harness_profile(provider, base)
    register_harness_profile(f"{provider}:model", override)
    found = get_harness_profile(f"{provider}:model")
    assert found is not None
    return found


def test_what_the_nearer_one_sets_wins_and_the_rest_stays() -> None:
    found = laid_over(
        HarnessProfile(
            base_system_prompt="Base.",
            system_prompt_suffix="Suffix.",
            tool_description_overrides={"ls": "Look.", "glob": "Find."},
            excluded_tools=frozenset({"task"}),
            excluded_middleware=frozenset({"TodoListMiddleware"}),
            general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=True, description="Does it."),
        ),
        HarnessProfile(
            base_system_prompt="",
            tool_description_overrides={"ls": "List."},
            excluded_tools=frozenset({"grep"}),
            excluded_middleware=frozenset({One}),
            general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=False),
        ),
        "merged",
    )

    assert found == HarnessProfile(
        base_system_prompt="",
        system_prompt_suffix="Suffix.",
        tool_description_overrides={"ls": "List.", "glob": "Find."},
        excluded_tools=frozenset({"task", "grep"}),
        excluded_middleware=frozenset({"TodoListMiddleware", One}),
        general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=False, description="Does it."),
    )


def test_a_profile_alone_stays_as_it_is() -> None:
    extra = [One()]
    found = laid_over(HarnessProfile(extra_middleware=extra), HarnessProfile(), "alone")

    assert found == HarnessProfile(extra_middleware=extra)


def test_middleware_goes_by_its_exact_class() -> None:
    kept, replaced, doubled, over, new = Two(), One(), One(), One(), Three()
    found = laid_over(
        HarnessProfile(extra_middleware=[replaced, kept, doubled]),
        HarnessProfile(extra_middleware=lambda: [over, new]),
        "classes",
    )

    assert found.materialize_extra_middleware() == [over, kept, new]


def test_a_factory_is_asked_for_each_stack() -> None:
    found = laid_over(
        HarnessProfile(extra_middleware=lambda: [One()]), HarnessProfile(extra_middleware=[Two()]), "factory"
    )

    first, second = found.materialize_extra_middleware(), found.materialize_extra_middleware()

    assert [type(each) for each in first] == [One, Two]
    assert first[0] is not second[0]
    assert first[1] is second[1]


def test_registering_again_lays_over() -> None:
    register_harness_profile("again", HarnessProfile(base_system_prompt="One.", system_prompt_suffix="Last."))
    register_harness_profile("again", HarnessProfile(base_system_prompt="Two."))

    assert get_harness_profile("again") == HarnessProfile("Two.", "Last.")
