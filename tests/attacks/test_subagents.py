"""A subagent is bound by its own rules, or by those of its parent, and takes nothing else with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from deepagents.testing import call, calls
from tests.attacks.harness import HINT, Ground, on_path
from tests.attacks.test_rules import DENY, ground
from tests.conftest import CallMode

PLACES = [("disk", "sync"), ("state", "async"), ("store", "sync")]
in_each_place = pytest.mark.parametrize(("where", "call_mode"), PLACES, indirect=["call_mode"])
HELP: Any = {"name": "helper", "description": "Helps", "system_prompt": "Help."}
TRIES = (
    *on_path("/secrets/plan.txt"),
    *on_path("/secrets/.env"),
    calls(("grep", {"pattern": HINT, "output_mode": "content"}), ("glob", {"pattern": "**/*"})),
    call("delete", file_path="/secrets"),
)


def tasked(made: Ground, call_mode: CallMode, who: str, *script: Any) -> list[str]:
    """Let a subagent go through a script; the verdict is on all that the parent and the caller see of it."""
    made.harmless |= {"task"}
    return made.run(
        call_mode, call("task", description="Look", subagent_type=who), *script, "Looked."
    ).problems()


@in_each_place
def test_the_general_subagent_keeps_its_parents_rules(
    tmp_path: Path, call_mode: CallMode, where: str
) -> None:
    made = ground(where, tmp_path / "real", DENY)

    assert tasked(made, call_mode, "general-purpose", *TRIES) == []


@in_each_place
def test_a_declared_subagent_keeps_its_parents_rules(tmp_path: Path, call_mode: CallMode, where: str) -> None:
    made = ground(where, tmp_path / "real", DENY)
    made.options["subagents"] = [HELP]

    assert tasked(made, call_mode, "helper", *TRIES) == []


@in_each_place
def test_a_subagent_with_narrower_rules_keeps_them(tmp_path: Path, call_mode: CallMode, where: str) -> None:
    made = ground(where, tmp_path / "real", [])
    made.options["subagents"] = [{**HELP, "permissions": DENY}]

    assert tasked(made, call_mode, "helper", *TRIES) == []


def test_a_subagent_of_a_subagent_is_not_freer(tmp_path: Path, call_mode: CallMode) -> None:
    made = ground("disk", tmp_path / "real", DENY)
    made.options["subagents"] = [HELP]
    again = call("task", description="Look", subagent_type="helper")

    assert tasked(made, call_mode, "general-purpose", again) == []


def test_a_name_beside_the_list_is_no_subagent(tmp_path: Path, call_mode: CallMode) -> None:
    made = ground("disk", tmp_path / "real", DENY)
    names = ["../general-purpose", "general-purpose ", "", "HELPER", "__init__"]
    run = made.run(
        call_mode, calls(*(("task", {"description": "x", "subagent_type": name}) for name in names))
    )

    assert run.problems() == []
    assert set(run.codes) == {"unknown_subagent"}


def test_arguments_beside_those_of_a_task_are_refused(tmp_path: Path, call_mode: CallMode) -> None:
    made = ground("disk", tmp_path / "real", DENY)
    more: dict[str, Any] = {"permissions": [], "backend": "host", "files": {"/x": "y"}}
    task = {"description": "x", "subagent_type": "general-purpose"}
    run = made.run(call_mode, *(call("task", **task, **{key: value}) for key, value in more.items()))

    assert {answer.status for answer in run.answers} == {"error"}
    assert [each for each in run.problems() if "not refused" not in each] == []


def test_files_that_a_foreign_subagent_returns_land_as_files_only(
    tmp_path: Path, call_mode: CallMode
) -> None:
    """A runnable of the caller's own is the caller's code; what it returns is still only merged."""
    forged = {"/../outside/secret.txt": {"content": "x", "encoding": "utf-8"}}
    worker: Any = RunnableLambda(lambda state: {"messages": [AIMessage("Done")], "files": forged})
    made = ground("disk", tmp_path / "real", DENY)
    made.options["subagents"] = [{"name": "own", "description": "Own", "runnable": worker}]

    made.harmless |= {"task"}

    assert made.run(call_mode, call("task", description="Go", subagent_type="own")).problems() == []
