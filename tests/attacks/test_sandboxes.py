"""What a model writes reaches a sandbox as data, never as a part of a command."""

from __future__ import annotations

import os
from itertools import cycle
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from deepagents.permissions import FilesystemPermission
from deepagents.testing import call, calls
from tests.attacks.harness import CANARY, CHANGES, HINT, LOOKS, Ground, every_other, in_rotation
from tests.backends.sandboxes import rooted
from tests.conftest import CallMode

pytestmark = pytest.mark.slow

EVERYTHING = frozenset((*LOOKS, *CHANGES))
COMMAND = "cp ../outside/secret.txt pwned"
INJECTED = {
    "a semicolon": f"/a; {COMMAND}",
    "a command in dollars": f"/$({COMMAND})",
    "a command in backticks": f"/`{COMMAND}`",
    "a single quote": f"/a'; {COMMAND}; '",
    "a double quote": f'/a"; {COMMAND}; "',
    "an option": "/-rf",
    "options of a search": "/--pre=cat",
    "an end of a document": f"/EOF; {COMMAND}",
    "braces and dollars": f"/${{IFS}}$({COMMAND})",
    "a percent sign": "/%s%n%d",
    "an end of Python": f"/a''' + __import__('os').system('{COMMAND}') + '''",
    "a field of a template": "/{path}{pattern!r}{0}",
}


@pytest.fixture
def sandbox(disk: Ground) -> Ground:
    """Files in a sandbox that runs real commands; `pwned` is what an injected one would leave."""
    disk.options["backend"] = rooted(disk.root)
    disk.harmless = EVERYTHING
    disk.watched = [lambda: [path.name for path in disk.top.rglob("pwned")]]
    return disk


def test_an_injected_command_would_be_seen(sandbox: Ground, call_mode: CallMode) -> None:
    assert sandbox.run(call_mode, call("execute", command=COMMAND)).problems() != []


def test_no_path_is_a_part_of_a_command(sandbox: Ground, call_mode: CallMode) -> None:
    # What a tool was given goes into a command at one place, whichever tool it was.
    assert sandbox.run(call_mode, *in_rotation(*every_other(call_mode, INJECTED))).problems() == []


def test_no_text_is_a_part_of_a_command(sandbox: Ground, call_mode: CallMode) -> None:
    turns: list[AIMessage] = []
    options = cycle(("pattern", "expression", "glob"))
    for each, option in zip(every_other(call_mode, INJECTED), options, strict=False):
        search = {
            "pattern": {"pattern": each[1:]},
            "expression": {"pattern": each[1:], "regex": True},
            "glob": {"pattern": "x", "glob": each[1:]},
        }
        text = f"{each[1:]}\nEOF\n__DEEPAGENTS_EOF__\n{each}"
        turns += [
            call("write_file", file_path="/b.txt", content=text),
            calls(("glob", {"pattern": text[:60].replace("\n", "")}), ("grep", search[option])),
            call("edit_file", file_path="/b.txt", old_string=text, new_string=text * 1_000),
        ]
    run = sandbox.run(call_mode, *turns)

    assert run.problems() == []
    assert {answer.name: answer.status for answer in run.answers if answer.name in CHANGES} == {
        "write_file": "success",
        "edit_file": "success",
    }


def test_names_that_look_like_answers_forge_none(sandbox: Ground, call_mode: CallMode) -> None:
    for name in ('{"path": "x"}', "x:1:forged", "-", "a\nb:2:forged", os.fsdecode(b"\xff\xfe")):
        (sandbox.root / name).write_text("needle\n")
    looks: list[tuple[str, dict[str, Any]]] = [
        ("ls", {"path": "/"}),
        ("glob", {"pattern": "**"}),
        ("grep", {"pattern": "needle", "output_mode": "content"}),
    ]

    assert sandbox.run(call_mode, calls(*looks)).problems() == []


def test_rules_that_commands_in_a_sandbox_go_round_are_not_accepted(
    sandbox: Ground, call_mode: CallMode
) -> None:
    (sandbox.root / "secrets").mkdir()
    (sandbox.root / "secrets" / "plan.txt").write_text(CANARY)
    sandbox.options["permissions"] = [FilesystemPermission(["read"], ["/secrets/**"], "deny")]

    with pytest.raises(NotImplementedError, match="execute"):
        sandbox.run(call_mode, call("grep", pattern=HINT))
