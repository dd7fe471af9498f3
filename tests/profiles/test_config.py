"""A harness profile can stand in a file, as far as a file can say it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deepagents import (
    GeneralPurposeSubagentProfile,
    HarnessProfile,
    HarnessProfileConfig,
    create_deep_agent,
    register_harness_profile,
)
from deepagents.errors import ProfileError
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.testing import ScriptedModel

FILE = """
system_prompt_suffix: Answer in verse.
tool_description_overrides:
  ls: Look.
excluded_tools: [glob, execute]
excluded_middleware: [TodoListMiddleware]
general_purpose_subagent:
  enabled: false
"""

texts = st.none() | st.text()
names = st.from_regex(r"[A-Z][a-z]+Middleware", fullmatch=True).filter(
    lambda name: name not in {"FilesystemMiddleware", "SubAgentMiddleware"}
)
configs = st.builds(
    HarnessProfileConfig,
    base_system_prompt=texts,
    system_prompt_suffix=texts,
    tool_description_overrides=st.dictionaries(st.text(), st.text()),
    excluded_tools=st.frozensets(st.text()),
    excluded_middleware=st.frozensets(names),
    general_purpose_subagent=st.none()
    | st.builds(GeneralPurposeSubagentProfile, st.none() | st.booleans(), texts, texts),
)


def test_a_file_shapes_an_agent() -> None:
    register_harness_profile("filed", HarnessProfileConfig.from_dict(yaml.safe_load(FILE)))
    model = ScriptedModel("Done.", provider="filed")
    create_deep_agent(model).invoke({"messages": "Go"})

    assert "Answer in verse." in model.asked[0].system
    assert not {"glob", "write_todos", "task"} & set(model.asked[0].tool_names)


@given(configs)
def test_what_is_written_is_read_back(config: HarnessProfileConfig) -> None:
    read = HarnessProfileConfig.from_dict(yaml.safe_load(yaml.safe_dump(config.to_dict())))

    assert read == config
    assert hash(read) == hash(config)


@given(configs)
def test_a_profile_made_of_a_file_becomes_that_file(config: HarnessProfileConfig) -> None:
    assert HarnessProfileConfig.from_harness_profile(config.to_harness_profile()) == config


def test_only_what_is_set_is_written() -> None:
    assert HarnessProfileConfig().to_dict() == {}
    assert HarnessProfileConfig(
        base_system_prompt="",
        excluded_tools=frozenset({"b", "a"}),
        general_purpose_subagent=GeneralPurposeSubagentProfile(),
    ).to_dict() == {"base_system_prompt": "", "excluded_tools": ["a", "b"], "general_purpose_subagent": {}}


@pytest.mark.parametrize("key", HarnessProfileConfig.__annotations__)
def test_a_key_with_nothing_after_it_is_as_if_it_were_not_there(key: str) -> None:
    assert HarnessProfileConfig.from_dict(yaml.safe_load(f"{key}:")) == HarnessProfileConfig()


def test_a_general_purpose_subagent_in_code_is_no_mapping() -> None:
    wrong: Any = {"enabled": False}
    with pytest.raises(TypeError, match="general_purpose_subagent must be GeneralPurposeSubagentProfile"):
        HarnessProfileConfig(general_purpose_subagent=wrong)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_exclusions_are_read_from_any_collection(kind: Any) -> None:
    assert HarnessProfileConfig.from_dict({"excluded_tools": kind(["ls"])}).excluded_tools == {"ls"}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"extra_middleware": []}, r"Unknown keys.*'extra_middleware'"),
        ({"excluded_tools": "ls"}, "excluded_tools must be"),
        ({"excluded_tools": [5]}, "excluded_tools must hold"),
        ({"excluded_middleware": [SummarizationMiddleware]}, "excluded_middleware must hold"),
        ({"system_prompt_suffix": 5}, "system_prompt_suffix must be str"),
        ({"tool_description_overrides": ["ls"]}, "tool_description_overrides must be"),
        ({"tool_description_overrides": {"ls": 5}}, "tool_description_overrides must map"),
        ({"general_purpose_subagent": "off"}, "general_purpose_subagent is read from a mapping"),
        ({"general_purpose_subagent": {"enabled": "no"}}, "enabled must be bool"),
        ({"general_purpose_subagent": {"prompt": ""}}, r"Unknown keys.*'prompt'"),
        ([], "a harness profile is read from a mapping"),
    ],
)
def test_what_means_nothing_is_refused_by_key(wrong: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        HarnessProfileConfig.from_dict(wrong)


def test_required_middleware_is_refused_in_a_file_too() -> None:
    with pytest.raises(ProfileError, match="scaffolding"):
        HarnessProfileConfig.from_dict({"excluded_middleware": ["FilesystemMiddleware"]})


def test_a_class_is_written_by_its_serialized_name_or_not_at_all() -> None:
    named = HarnessProfile(excluded_middleware=frozenset({SummarizationMiddleware}))
    unnamed = HarnessProfile(excluded_middleware=frozenset({dict}))

    assert HarnessProfileConfig.from_harness_profile(named).excluded_middleware == {"SummarizationMiddleware"}
    with pytest.raises(ProfileError, match="serialized_name"):
        HarnessProfileConfig.from_harness_profile(unnamed)


@pytest.mark.parametrize("extra", [[SummarizationMiddleware.__new__(SummarizationMiddleware)], list])
def test_middleware_cannot_be_written(extra: Any) -> None:
    with pytest.raises(ProfileError, match="extra_middleware"):
        HarnessProfileConfig.from_harness_profile(HarnessProfile(extra_middleware=extra))
