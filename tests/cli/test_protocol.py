"""What the screen and the worker say to each other arrives as it was said, and what is neither is let go."""

from __future__ import annotations

from deepagents_cli.protocol import read, write


def test_a_message_is_one_line_whatever_its_text_holds() -> None:
    said = {
        "do": "send",
        "text": "two\nlines, half a character \ud83d, \u2028 and \x1b[2J",
        "attachments": [],
    }

    line = write(said)

    assert line.count(b"\n") == 1
    assert read(line) == said


def test_what_is_no_message_is_let_go() -> None:
    assert read(b"a library printed this\n") is None
    assert read(b"[1]") is None
    assert read(b"\xff\n") is None
