"""One task at a terminal: the answer is rendered, and until it comes something moves."""

from __future__ import annotations

import re
import signal
import sqlite3
import termios
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from threading import Event
from typing import Any

import pytest

from deepagents_cli.__main__ import main
from tests.cli.openai_server import Reply, call
from tests.cli.terminal.person import Home, Person
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]
WORKS = r"^\S working (· .* )?· Ctrl-C stops$"
ANSWER = "# Found\n\nThis List<int> is **good**.\n\n1. one\n2. two\n\n```python\nx = 1\n```\n"
RENDERED = ["", "Found", "", "This List<int> is good.", "", " 1 one", " 2 two", "", "  x = 1", ""]
FIRST = r"^local-server:scripted · thread .*$"
LAST = r"^[\d,]+ tokens in, .*$"


def sit_down(home: Home, *task: str, **options: Any) -> AbstractContextManager[Person]:
    """Sit down at a terminal with colours."""
    given: dict[str, Any] = {"NO_COLOR": "", **options}
    return home.sit_down(*task, **given)


def between(screen: str) -> list[str]:
    """What stands between the first line of a run and the last, which says what it took."""
    _, _, rest = re.split(f"({FIRST})", screen, maxsplit=1, flags=re.MULTILINE)
    middle, *_ = re.split(LAST, rest, maxsplit=1, flags=re.MULTILINE)
    return middle.split("\n")[1:-1]


def test_the_answer_is_rendered_and_what_moved_is_gone(home: Home) -> None:
    thinks = Event()

    def answer(_: object) -> Reply:
        thinks.wait(60)
        return Reply(ANSWER)

    home.server.then(answer)
    with sit_down(home, "say it") as person:
        person.sees(WORKS)
        thinks.set()
        assert person.terminal.wait_for_end() == 0

        assert between(person.sees(LAST, history=True)) == RENDERED


def test_a_long_call_stays_on_its_line_while_something_moves(home: Home) -> None:
    home.server.then(call("execute", command="until test -e go-on; do sleep 0.05; done; rm go-on"), "Done.")
    with sit_down(home, "--auto", "wait") as person:
        person.sees(rf"^\S execute until test .*\n{WORKS}")
        (home.directory / "go-on").touch()
        assert person.terminal.wait_for_end() == 0

        called, *rest = between(person.sees(LAST, history=True))

    assert called.startswith("✓ execute until test -e go-on; do sleep 0.05; done; rm go-on  ")
    assert rest == ["", "Done.", ""]


def test_nothing_moves_while_a_person_is_asked(home: Home) -> None:
    home.server.then(call("write_file", file_path="asked.md", content="hello\n"), "Written.")
    with sit_down(home, "write") as person:
        asked = person.sees(r"\[\?\] \?")
        person.enters("y")
        assert person.terminal.wait_for_end() == 0
        shown = between(person.sees(LAST, history=True))

    assert not re.search(WORKS, asked, re.MULTILINE)
    assert shown[-3:] == ["", "Written.", ""]
    assert (home.directory / "asked.md").read_text() == "hello\n"


def test_what_a_hook_says_has_a_line_of_its_own(home: Home) -> None:
    settings = home.home / "hooks.toml"
    settings.write_text('hooks.after_tool = ["sleep 0.5; echo broken; exit 3"]\n')
    home.server.then(call("ls", path="."), "Done.")
    with sit_down(home, "look", DEEPAGENTS_SETTINGS=str(settings)) as person:
        assert person.terminal.wait_for_end() == 0
        shown = between(person.sees(LAST, history=True))

    assert shown[0].startswith("deepagents: the hook 'sleep 0.5; echo broken; exit 3' ended with 3: broken")
    assert shown[1].startswith("✓ ls .")


def test_ctrl_c_leaves_what_was_written_and_nothing_that_moved(home: Home) -> None:
    never = Event()
    home.server.then(Reply("Half of it", hold=never))
    with sit_down(home, "write") as person:
        person.sees(f"^Half\n\n{WORKS}")
        person.presses("C-c")
        assert person.terminal.wait_for_end() == 130
        never.set()

        shown = person.sees("^deepagents: stopped", history=True)

    assert "working" not in shown
    assert re.search(r"^Half\n", shown, re.MULTILINE)


def test_a_second_ctrl_c_ends_a_task_that_cannot_save_as_it_says(home: Home) -> None:
    home.server.then(Reply("Half of it", hold=(never := Event())))
    with sit_down(home, "write") as person:
        person.sees(f"^Half\n\n{WORKS}")
        with closing(sqlite3.connect(home.home / "state" / "threads.sqlite", timeout=60)) as sessions:
            sessions.execute("BEGIN IMMEDIATE")
            person.presses("C-c")
            person.sees("^. stopping · Ctrl-C ends at once$")
            person.presses("C-c")
            # A signal ended it, and it could not say by which.
            assert person.terminal.wait_for_end() == 128 + signal.SIGKILL
        never.set()


def test_a_task_goes_on_behind_what_was_written_before_ctrl_c(home: Home) -> None:
    home.server.then(Reply("Half of it", hold=(never := Event())), "The rest.")
    with sit_down(home, shell=True) as person:
        command = f"{home.python} -m deepagents_cli run --model local-server:scripted"
        person.enters(f"{command} 'write'")
        person.sees(f"^Half\n\n{WORKS}")
        person.presses("C-c")
        person.sees("^deepagents: stopped")
        never.set()
        person.enters(f"{command} --continue; echo END")
        person.sees("^The rest.(.*\n)+END")

    *_, partly, further = home.server.requests[-1].messages
    assert partly["content"] == "Half\n\n[The person stopped the answer here.]"
    assert further["content"] == "Go on."


@pytest.mark.parametrize("columns", [20, 40])
def test_a_narrow_terminal_shows_each_word_once(home: Home, columns: int) -> None:
    words = [f"word{number}" for number in range(60)]
    home.server.then(Reply(" ".join(words), every=0.02))
    # A shell may have exported what held for another window.
    with sit_down(home, "count", columns=columns, rows=8, COLUMNS="80", LINES="24") as person:
        assert person.terminal.wait_for_end() == 0
        shown = person.sees("tokens", history=True)

    assert re.findall(r"word\d+", shown) == words
    assert "working" not in shown


def run_without_size(arguments: Sequence[str]) -> int:
    """Run the command at a terminal as a container gets it without a person at it."""
    termios.tcsetwinsize(0, (0, 0))
    return main(arguments)


def test_a_terminal_that_tells_no_size_has_80_columns(home: Home) -> None:
    line = " ".join(["word"] * 15)
    home.server.then(line)
    with sit_down(home, "say it", forked=run_without_size) as person:
        assert between(person.sees(LAST, history=True)) == ["", line, ""]


def test_a_window_that_is_dragged_keeps_few_copies(home: Home) -> None:
    words = [f"word{number}" for number in range(200)]
    paragraphs = [" ".join(words[at : at + 40]) for at in range(0, 200, 40)]
    home.server.then(Reply("\n\n".join(paragraphs), every=0.03))
    with sit_down(home, "count", columns=100, rows=24) as person:
        person.sees("^word0 ")
        for columns in range(98, 50, -2):
            person.terminal.resize(columns, 24)
            # As a hand would: longer than what is drawn stays, so that each width is drawn at.
            time.sleep(0.15)
        assert person.terminal.wait_for_end() == 0
        shown = person.sees("tokens", history=True)

    # What is written is broken anew too, within words.
    seen = Counter(re.findall(r"word\d+", re.sub(r"(?<!\n)\n(?!\n)", "", shown)))
    assert [each for each in words if each not in seen] == []
    # The terminal breaks anew what was drawn at the first width, and a row of it may stay.
    assert sum(seen.values()) - len(words) <= 12


@pytest.mark.parametrize(
    ("variables", "options"),
    [({"NO_COLOR": "1"}, []), ({"TERM": "dumb"}, []), ({}, ["-q"])],
    ids=["no-color", "dumb", "quiet"],
)
def test_elsewhere_the_answer_is_written_as_it_is(
    home: Home, variables: dict[str, str], options: list[str]
) -> None:
    home.server.then(ANSWER)
    with sit_down(home, *options, "say it", **variables) as person:
        assert person.terminal.wait_for_end() == 0
        shown = person.terminal.screen(history=True)

    assert ANSWER in shown
    assert "working" not in shown


# Some surroundings, as of continuous integration, ask for colours where there is no terminal.
@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}], ids=["pipe", "coloured-pipe"])
def test_into_a_pipe_the_answer_is_written_as_it_is(home: Home, variables: dict[str, str]) -> None:
    home.server.then(ANSWER)
    with sit_down(home, shell=True, **variables) as person:
        program = f"{home.python} -m deepagents_cli --model local-server:scripted"
        person.enters(f"{program} 'say it' | cat; echo END")
        shown = person.sees("^END", history=True)

    assert ANSWER in shown
    assert "working" not in shown
