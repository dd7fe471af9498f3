"""Output has colours at a terminal, and is plain where there is none."""

from __future__ import annotations

import io
import os
import pty
from pathlib import Path

import pytest

import deepagents_cli
from deepagents_cli.terminal import WIDTH_IN_A_PIPE, make_console


def test_text_is_made_for_the_console_in_one_module() -> None:
    modules = Path(deepagents_cli.__file__).parent.rglob("*.py")
    assert [each.name for each in modules if "rich.text" in each.read_text()] == ["terminal.py"]


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
