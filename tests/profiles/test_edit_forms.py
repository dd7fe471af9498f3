"""Which tool an agent edits with, by its profile: always one form, and never two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from deepagents import (
    FilesystemMiddleware,
    FilesystemPermission,
    HarnessProfile,
    HarnessProfileConfig,
    create_deep_agent,
    register_harness_profile,
)
from deepagents.errors import ConfigError, ProfileError
from deepagents.testing import Asked, ScriptedModel

EDITS = {"edit_file", "edit_lines", "apply_patch"}


def first_request(profile: HarnessProfile | None = None, name: str = "plain", **options: Any) -> Asked:
    if profile is not None:
        register_harness_profile(f"forms:{name}", profile)
    with ScriptedModel("Done.", provider="forms", model_name=name) as model:
        create_deep_agent(model, **options).invoke({"messages": "Go"})
    return model.asked[0]


def edits_in(asked: Asked) -> set[str]:
    return EDITS & {*asked.tool_names}


FORMS = [("replace", "edit_file"), ("anchors", "edit_lines"), ("patch", "apply_patch")]


@pytest.mark.parametrize(("form", "tool"), FORMS)
def test_a_profile_chooses_the_one_form(form: Any, tool: str) -> None:
    asked = first_request(HarnessProfile(edit_form=form), form, memory=["/AGENTS.md"])
    texts = [asked.system, *(each["function"]["description"] for each in asked.tools)]

    assert edits_in(asked) == {tool}
    assert asked.tool_names.index(tool) == asked.tool_names.index("write_file") + 1
    assert {name for name in EDITS if any(name in text for text in texts)} == {tool}


@pytest.mark.parametrize(("form", "tool"), FORMS)
def test_the_file_tools_of_a_caller_have_the_form_that_they_are_given(form: Any, tool: str) -> None:
    assert edits_in(first_request(middleware=[FilesystemMiddleware(edit_form=form)])) == {tool}


@pytest.mark.parametrize(
    ("profile", "tools"),
    [
        (HarnessProfile(edit_form="anchors", excluded_tools=frozenset({"edit_file"})), None),
        (HarnessProfile(edit_form="anchors"), ["read_file", "write_file"]),
    ],
    ids=["excluded by the profile", "left out by the caller"],
)
def test_where_edits_are_left_out_no_form_comes_back(
    profile: HarnessProfile, tools: Sequence[Any] | None
) -> None:
    own = [FilesystemMiddleware(tools=tools, edit_form="anchors")] if tools else []

    assert edits_in(first_request(profile, f"none{len(own)}", middleware=own)) == set()


@pytest.mark.parametrize("missing", ["write_file", "delete"])
def test_a_patch_is_no_way_to_tools_that_were_left_out(missing: str) -> None:
    profile = HarnessProfile(edit_form="patch", excluded_tools=frozenset({missing}))
    tools: Any = [each for each in ("read_file", "write_file", "edit_file", "delete") if each != missing]
    own = FilesystemMiddleware(tools=tools, edit_form="patch")

    assert edits_in(first_request(profile, f"no-{missing}")) == {"edit_file"}
    assert edits_in(first_request(middleware=[own])) == {"edit_file"}
    whole = FilesystemMiddleware(edit_form="patch")
    found = first_request(
        HarnessProfile(excluded_tools=frozenset({missing})), f"has-{missing}", middleware=[whole]
    )
    assert edits_in(found) == {"edit_file"}
    assert "edit_file" in found.system


def test_the_form_is_kept_in_files_and_the_later_profile_wins() -> None:
    config = HarnessProfileConfig.from_dict({"edit_form": "anchors"})
    register_harness_profile("forms:merged", HarnessProfile(edit_form="replace"))
    register_harness_profile("forms:merged", config)

    assert config.to_dict() == {"edit_form": "anchors"}
    assert edits_in(first_request(HarnessProfile(), "merged")) == {"edit_lines"}


def test_a_form_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ProfileError, match="'replace', 'anchors', 'patch'.*got 'diff'"):
        HarnessProfile(edit_form="diff")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="got 'diff'"):
        FilesystemMiddleware(edit_form="diff")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="shows no anchors"):
        FilesystemMiddleware(edit_form="anchors", read_format="header")


def test_a_tool_of_the_caller_may_have_the_name_of_a_form_that_is_not_offered() -> None:
    def edit_lines(file_path: str) -> str:
        """Do something else."""
        return file_path

    rules = [FilesystemPermission(["write"], ["/secret"], "deny")]
    assert edits_in(first_request(tools=[edit_lines], permissions=rules)) == {"edit_file", "edit_lines"}
