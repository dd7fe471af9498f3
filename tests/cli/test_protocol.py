"""What the screen and the worker say to each other arrives as it was said, and what is neither is a fault."""

from __future__ import annotations

import pytest

from deepagents.events import PlanChanged, Todo
from deepagents_cli import protocol
from deepagents_cli.protocol import read_for_screen, read_for_worker, write


def test_a_message_is_one_line_whatever_its_text_holds() -> None:
    said = protocol.Send("two\nlines, half a character \ud83d, \u2028 and \x1b[2J", ["notes.md"])

    line = write(said)

    assert line.count(b"\n") == 1
    assert read_for_worker(line) == said


def test_what_a_message_is_made_of_arrives_too() -> None:
    changes = [protocol.FileChange("/x/new.md", None, "text")]
    todos = (Todo("look", "completed"),)
    plan = protocol.Happened(PlanChanged(todos, agent="helper"), None, ["-a"], changes, ["/x/new.md"])
    picker = protocol.Result(1, choices=[protocol.Choice("a", "A", usable=False)])
    asked = protocol.Ask("1", "wants", [], ["approve"], edit=protocol.Editable("x", ".py"), changes=changes)

    assert read_for_screen(write(plan)) == plan
    assert read_for_screen(write(picker)) == picker
    assert read_for_screen(write(asked)) == asked


def test_what_a_model_gives_is_never_read_as_a_message() -> None:
    options = {"is": "Failed", "text": "", "code": 1}

    assert read_for_worker(write(protocol.Open(".", options))) == protocol.Open(".", options)


@pytest.mark.parametrize(
    "line",
    [
        b"a library printed this\n",
        b"[1]",
        b"\xff\n",
        b'{"text": "Hi."}',
        b'{"is": "Sned", "text": "Hi."}',
        b'{"is": "Send"}',
        b'{"is": "Send", "text": "Hi.", "more": 1}',
        b'{"is": "Decide", "ask": "1", "decision": "approve", "remember": "edit: a"}',
    ],
)
def test_what_is_no_message_is_a_fault(line: bytes) -> None:
    with pytest.raises(ValueError, match="is not a message of this version"):
        read_for_worker(line)


def test_neither_end_takes_what_is_for_the_other() -> None:
    with pytest.raises(ValueError, match="is not a message"):
        read_for_screen(write(protocol.Stop()))
