"""Edits by anchors and by patches are judged and shown as edits are: each path by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deepagents._text.anchors import anchor_lines
from deepagents.events import ApprovalRequest
from deepagents_cli.approval.policy import Policy
from deepagents_cli.approval.questions import make_question
from deepagents_cli.values import Mode
from tests.cli.approval.test_policy import make_files

UPDATE = ["*** Update File: notes.md", "-first line", "+1st line"]


def patch(*body: str) -> ApprovalRequest:
    return about("apply_patch", patch="\n".join(["*** Begin Patch", *body, "*** End Patch"]))


def about(name: str, **arguments: Any) -> ApprovalRequest:
    return ApprovalRequest("1", name, arguments, tool_call_id=name, allowed=("approve", "edit", "reject"))


@pytest.fixture
def policy(directory: Path) -> Policy:
    return Policy(make_files(directory), directory)


def test_a_question_shows_all_that_a_patch_changes(policy: Policy, directory: Path) -> None:
    (directory / "old.txt").write_text("gone\n")
    body = [*UPDATE, "*** Add File: /new.md", "+hello", "*** Delete File: old.txt"]
    question = make_question(patch(*body), policy)

    assert question.title == "wants to change notes.md, /new.md, old.txt"
    assert question.language == "diff"
    for line in ("-first line", "+1st line", "+hello", "-gone"):
        assert line in question.details
    assert question.edit is not None
    assert question.edit.text.startswith("*** Begin Patch")


def test_a_question_shows_what_edits_by_anchors_change(policy: Policy, directory: Path) -> None:
    anchor = anchor_lines((directory / "notes.md").read_text()).partition("|")[0]
    edits = [{"op": "replace", "anchor": anchor, "text": "1st line"}]
    question = make_question(about("edit_lines", file_path="/notes.md", edits=edits), policy)

    assert question.title == "wants to edit /notes.md"
    assert question.details[-3:] == ["-first line", "+1st line", " second line"]


@pytest.mark.parametrize(("mode", "kind"), [("plan", "refuse"), ("ask", "ask"), ("auto", "allow")])
def test_modes_hold_as_for_other_edits(policy: Policy, mode: Mode, kind: str) -> None:
    policy.mode = mode

    assert policy.judge(patch(*UPDATE)).kind == kind
    assert policy.usual("apply_patch") == policy.usual("edit_file") == kind


@pytest.mark.parametrize(
    "other",
    [
        ["*** Add File: .env", "+KEY=1"],
        ["*** Update File: notes.md", "*** Move to: .git/hooks/pre-commit"],
        ["*** Delete File: .env.local"],
    ],
    ids=["a secret", "a hook", "a secret that goes"],
)
def test_one_guarded_path_makes_the_whole_patch_wait(
    policy: Policy, directory: Path, other: list[str]
) -> None:
    (directory / ".env.local").write_text("KEY=1\n")
    policy.mode = "auto"

    assert policy.judge(patch("*** Add File: plain.md", "+x", *other)).kind == "ask"


def test_a_rule_of_always_covers_a_patch_where_it_covers_every_path(policy: Policy, directory: Path) -> None:
    question = make_question(patch(*UPDATE), policy)
    assert f"edit: {directory}/notes.md" in question.rules
    policy.remember(f"edit: {directory}/notes.md", "session")

    assert policy.judge(patch(*UPDATE)).kind == "allow"
    assert policy.judge(patch(*UPDATE, "*** Add File: new.md", "+x")).kind == "ask"
    assert policy.judge(patch("*** Delete File: notes.md")).kind == "ask"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (["*** Update File: notes.md", "first"], "[invalid_argument]"),
        (["*** Update File: notes.md", "-third line"], "[no_match]"),
        (["*** Add File: ../x", "+x"], "is not a path here"),
    ],
)
def test_a_patch_that_cannot_be_applied_is_refused_and_not_asked_about(
    policy: Policy, body: list[str], said: str
) -> None:
    verdict = policy.judge(patch("*** Add File: new.md", "+x", *body))

    assert verdict.kind == "refuse"
    assert said in verdict.reason
