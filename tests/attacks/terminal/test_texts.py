"""Text from a model, a tool or a file steers no terminal, in any mode."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from deepagents.events import ApprovalRequest, Custom, Event, RunStarted, Todo, Token
from deepagents.testing import ScriptedModel, call
from deepagents_cli.approval.policy import Policy
from deepagents_cli.protocol import Happened, Idle
from deepagents_cli.session.agent.agents import make_files
from deepagents_cli.session.display.lines import line_of
from deepagents_cli.views.task import TaskView, write_json
from tests.cli.answers import answer
from tests.cli.conftest import Command, Nursery
from tests.cli.scenarios import writes_a_long_file

pytestmark = pytest.mark.slow

HOSTILE = "ls\x1b]0;PWN\x07\x1b[2J\x9b2J\r\x08\x7f\u202e\u2066\U0001d173"
HOSTILE_NAME = HOSTILE.replace("\r", "")
STEERS = [*"\x1b\x07\x9b\r\x08\x7f\u202e\u2066", "\U0001d173"]
TEXTS: dict[str, Any] = {
    "args": {"file_path": HOSTILE, HOSTILE: HOSTILE},
    "todos": (Todo(HOSTILE, HOSTILE),),
    "requests": (ApprovalRequest(HOSTILE, HOSTILE, {"file_path": HOSTILE, "content": HOSTILE}),),
    "data": {"type": "rubric_evaluation_end", "result": HOSTILE},
    "question": HOSTILE,
    "structured": HOSTILE,
    "kind": HOSTILE,
    "limit": 1,
    "index": 1,
    "spent": 1,
    "seconds": 1,
    "retry": 1,
    "retries": 1,
}


def hostile(kind: type[Any], status: str) -> Any:
    """Make an event of this kind with hostile text wherever it has text."""
    given = {
        each.name: TEXTS.get(each.name, status if each.name == "status" else HOSTILE)
        for each in fields(kind)
        if not each.name.endswith("tokens") and each.name != "resumed"
    }
    counts = {"usage": {"input_tokens": 1, "output_tokens": 1}, "cache_broken": {"lost_tokens": 1}}
    return kind(**given, **counts.get(kind.type, {}))


def events(status: str) -> Iterator[Event]:
    yield RunStarted("t", "go")
    for kind in get_args(Event):
        yield hostile(kind, status)


async def shown(*told: Event) -> str:
    """What the view of a task writes."""
    with redirect_stdout(io.StringIO()) as out:
        view = TaskView("text", Path("/"))
        with view.attached(lambda message: None) as over:
            for event in told:
                view.take(Happened(event, line_of(event, "/")))
            view.take(Idle("done"))
            await over
    return out.getvalue()


@pytest.mark.parametrize("status", ["success", "error"])
async def test_no_event_steers_the_terminal(status: str) -> None:
    written = await shown(*events(status))

    assert [each for each in STEERS if each in written] == []
    assert len(written) > 1000


@pytest.mark.parametrize("status", ["success", "error"])
def test_no_line_of_json_steers_the_terminal(status: str) -> None:
    out = io.StringIO()
    for event in events(status):
        write_json(event, out)

    assert [each for each in STEERS if each in out.getvalue()] == []


def speaks_to_steer() -> ScriptedModel:
    """Call a tool with a hostile path, and answer with hostile text, also when asked whether that is all."""
    return ScriptedModel(call("ls", path=HOSTILE), *[f"{HOSTILE}\n\n{HOSTILE}"] * 2)


def test_a_terminal_that_is_drawn_on_is_steered_by_no_text(nursery: Nursery) -> None:
    child = nursery.at_terminal(speaks_to_steer, HOSTILE_NAME, NO_COLOR="")

    assert child.end() == 0
    written = re.sub(r"\x1b\[[\d;]*[mACJK]|\r(?=\x1b\[)", "", child.output)
    assert [each for each in STEERS if each in written] == []
    assert written.count("PWN") >= 3


def test_json_still_says_what_was_there() -> None:
    out = io.StringIO()
    write_json(Token(HOSTILE), out)

    assert json.loads(out.getvalue())["text"] == HOSTILE


async def test_a_custom_event_of_another_form_is_not_shown() -> None:
    assert await shown(Custom(HOSTILE)) == ""


async def asked(request: ApprovalRequest, directory: Path, *answers: str) -> str:
    """What a person sees of a request until these answers are typed."""
    policy = Policy(make_files(directory), directory)
    return (await answer(request, policy, answers, HOSTILE))[0]


@pytest.mark.parametrize("name", ["write_file", "edit_file", "delete", "execute", HOSTILE])
async def test_no_question_steers_the_terminal(name: str, directory: Path) -> None:
    args: dict[str, str] = dict.fromkeys(
        ("content", "old_string", "new_string", "command", HOSTILE), f"{HOSTILE}\n{HOSTILE}"
    )
    # A path with control characters is refused unasked.
    path = "PWN\u202e\u2066\U0001d173"
    (directory / path).write_text(f"{HOSTILE}\n{HOSTILE}")
    args["new_string"] = f"{HOSTILE}!"
    request = ApprovalRequest("1", name, {**args, "file_path": f"/{path}", "replace_all": True})
    written = await asked(request, directory, "?", "e", f"{HOSTILE}", ".", "y")

    assert [each for each in STEERS if each in written] == []
    assert "PWN" in written


async def test_a_command_is_shown_on_the_lines_that_a_shell_reads(directory: Path) -> None:
    request = ApprovalRequest("1", "execute", {"command": "true #\x0brm -rf /\x85x\nls\u2028y"})

    assert "  $ true #\\x0brm -rf /\\x85x\n  $ ls\\u2028y\n" in await asked(request, directory, "y")


def test_what_is_long_is_approved_only_when_all_of_it_was_shown(nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(writes_a_long_file, "write it")

    first = child.wait_for(r"\? $")
    assert "+line 490\n" in first
    assert "payload" not in first
    assert "[y]es" not in first
    assert "[a]lways" not in first
    assert "more lines" in first
    child.type("y")
    child.wait_for(r"\? $")
    child.type("v")
    rest = child.wait_for(r"\[y\]es.*\? $")
    assert "+payload\n" in rest
    child.type("y")

    assert child.end() == 0
    assert (directory / "new.md").read_text().endswith("payload\n")


def test_errors_and_tracebacks_steer_no_terminal(cli: Command) -> None:
    def fails(asked: Any) -> Any:
        raise ValueError(HOSTILE)

    for flags in ([], ["--debug"]):
        ended = cli.run("go", *flags, model=ScriptedModel(fails))
        assert [each for each in STEERS if each in ended.err + ended.out] == []
        assert ended.code == 1


def test_a_tool_that_was_named_to_steer_is_only_shown(cli: Command) -> None:
    ended = cli.run("go", model=ScriptedModel(call(HOSTILE), "Done."))

    assert [each for each in STEERS if each in ended.out + ended.err] == []
