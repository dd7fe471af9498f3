"""Text is made safe for a terminal, and plain where there is none."""

from __future__ import annotations

import io
import os
import pty
from pathlib import Path

import pytest

import deepagents_cli
from deepagents_cli.terminal import WIDTH_IN_A_PIPE, clean, make_console, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("windows\r\nlines", "windows\nlines"),
        ("over\rwritten", "over\\rwritten"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x9b2J", "\\x9b2J"),
        ("abc\u202edef", "abc\\u202edef"),
        ("abc\u200fdef\u2028", "abc\\u200fdef\\u2028"),
        ("half \ud83d", "half \\ud83d"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("zero\u200bwidth \ufeff", "zero\\u200bwidth \\ufeff"),
        ("ümläut 漢字 👩\u200d🚀 \u3000", "ümläut 漢字 👩\u200d🚀 \u3000"),
    ],
    ids=ascii,
)
def test_what_steers_a_terminal_becomes_visible(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_text_is_made_for_the_console_in_one_module() -> None:
    modules = Path(deepagents_cli.__file__).parent.rglob("*.py")
    assert [each.name for each in modules if "rich.text" in each.read_text()] == ["terminal.py"]


def test_lines_are_joined() -> None:
    assert one_line("  one\n\n two\t three ") == "one two three"


def test_a_pipe_has_a_fixed_width_and_no_colour() -> None:
    out = io.StringIO()
    console = make_console(out, {})

    console.print("red", style="red")

    assert console.width == WIDTH_IN_A_PIPE
    assert out.getvalue() == "red\n"


def test_what_the_encoding_lacks_is_written_as_an_escape() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, "ascii")

    make_console(out, {}).print("café")
    out.flush()

    assert raw.getvalue() == b"caf\\xe9\n"


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_has_colours_unless_told_otherwise(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR")
    reading, writing = pty.openpty()
    with os.fdopen(writing, "w") as terminal:
        make_console(terminal, environment).print("red", style="red")
        terminal.flush()
        shown = os.read(reading, 100).decode()
    os.close(reading)

    assert ("\x1b[31m" in shown) is coloured
