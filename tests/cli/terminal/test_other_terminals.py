"""The same conversation in a narrow terminal without colours, and as plain lines."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from threading import Event

import pytest

from deepagents.backends import LocalSandbox
from tests.cli.openai_server import Reply, call
from tests.cli.terminal.person import QUESTION, Home, Person
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]
COLUMNS = 60
LONG = "a line that is much longer than sixty columns, so that it must be broken somewhere"

TABLE = f"| a | b |\n|---|---|\n| {LONG} | 1 |\n"


@pytest.fixture(scope="module")
def sitting(home: Home) -> Iterator[Person]:
    """A person at a terminal of 60 columns that is to have no colours, with an editor that writes Latin."""
    editor = home.home / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/hello/salve/ "$1"\n')
    editor.chmod(0o755)
    clipboard = home.home / "bin/wl-paste"
    clipboard.parent.mkdir(exist_ok=True)
    clipboard.write_text(f'#!/bin/sh\n[ "$*" = "--type image/png" ] && cat {home.home}/copied\n')
    clipboard.chmod(0o755)
    with home.sit_down(
        columns=COLUMNS, rows=40, NO_COLOR="1", VISUAL=str(editor), WAYLAND_DISPLAY="wayland-0"
    ) as person:
        person.sees("scripted in\\b")
        yield person


def test_a_change_is_edited_in_the_editor_and_shown_again(person: Person) -> None:
    write = call("write_file", file_path="new.md", content=f"hello, {LONG}\n")
    person.asks("Greet.", write, f"Greeted with {LONG}.")
    person.answers("e")
    shown = person.sees(r"^  \+salve, a line that")
    person.answers("y")
    person.sees("^Greeted with a line")

    assert LONG in " ".join(shown.split())
    assert (person.directory / "new.md").read_text() == f"salve, {LONG}\n"


def test_the_picture_in_the_clipboard_is_sent(person: Person) -> None:
    person.presses("C-v")
    person.sees("^no picture to paste, or no wl-paste, xclip or pngpaste$")
    person.sees_gone("^no picture")
    (person.home.home / "copied").write_bytes(b"\x89PNG copied")
    person.terminal.type("Look: ")
    person.presses("C-v")
    person.sees(r"^› Look: \[picture #1\]")
    person.asks("", "I see it.")
    person.sees("^I see it.")

    text, picture = person.server.requests[-1].messages[-1]["content"]
    sent = b64decode(picture["image_url"]["url"].removeprefix("data:image/png;base64,"))
    assert (text["text"], sent) == ("Look: [picture #1]", b"\x89PNG copied")


def test_a_choice_says_in_60_columns_how_to_choose_and_leave(person: Person) -> None:
    person.asks("Greet.", call("write_file", file_path="always.md", content="hello\n"))
    person.answers("a")
    person.sees("^Always allow what\\?\ntype to filter, Enter takes it, Esc leaves\n> ")
    person.presses("Escape")
    person.sees(QUESTION)
    person.presses("Escape")
    person.sees("^Stopped. What is done is kept.")


def test_all_fits_into_60_columns_and_has_no_colours(person: Person) -> None:
    person.asks(
        "Work.",
        call("task", description=LONG, subagent_type="taster"),
        f"Tasted: {LONG}",
        f"# Done\n\n- {LONG}\n\n```python\nprint('{LONG}')\n```\n\n{TABLE}\nThe end.",
    )
    shown = person.sees("^The end.")
    assert "\nDone\n" in shown
    assert LONG in " ".join(shown.replace("•", "").split())
    person.enters("/context")
    person.sees("^tools ")
    person.enters("/help")
    person.sees(
        "^/sessions     list the sessions of this directory, to open\n              one: \\[NAME\\]\n"
    )
    person.enters("/model")
    person.sees("^> local-server:scripted ")

    coloured = person.terminal.screen(colours=True)
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|4[0-7])m", coloured)
    assert re.search(r"^local-server:scripted · .* · ask$", person.terminal.screen(), re.MULTILINE)
    person.presses("Escape")


def test_plain_lines(home: Home) -> None:
    with home.sit_down("--plain") as person:
        person.sees("^Ready.")
        hold = Event()
        person.asks("Count.", call("ls", path="."), Reply("One.", hold=hold), "One, two.")
        person.sees("^ok ls")
        person.enters("To two.")
        person.sees("^queued: To two.")
        hold.set()
        person.sees("^One, two.\n+Ready.")
        if not LocalSandbox.available():
            person.enters("!echo one; echo begun; sleep 600")
            person.sees(r"^running \(sandbox\): ! echo one; echo begun; sleep 600\none\nbegun$")
            person.presses("C-c")
            person.sees("!! ! echo one; .*  sandbox, stopped by the person")
        person.enters("/mode plan")
        person.sees("^Mode plan")
        person.asks(
            "Greet.",
            call("present_plan", plan="Write plain.md."),
            call("write_file", file_path="plain.md", content="hello\n"),
            "Greeted.",
        )
        person.sees(r"^Carry it out, asking \(1\), Carry it out \(2\), Keep planning \(3\), reply \(r\), ")
        person.enters("1")
        person.sees("^The agent wants to write plain.md")
        person.sees(r"^yes \(y\), no \(n\)")
        person.enters("?")
        person.sees("^Ctrl-C +refuse, and stop the present step\n+yes")
        person.enters("yes")
        person.sees("^Greeted.\n+Ready.")
        person.enters("/model")
        person.sees("^cannot be used: anthropic")
        person.enters("")
        person.presses("C-d")

        assert person.terminal.wait_for_end() == 0
        assert "Go on with: deepagents --continue" in person.terminal.screen()
        assert "\x1b" not in person.terminal.screen(colours=True)
    assert (home.directory / "plain.md").read_text() == "hello\n"
