"""What a model thinks is shown while it thinks, folded afterwards, whole by Ctrl-O, and never sent again."""

from __future__ import annotations

import json
from threading import Event

import pytest

from tests import programs
from tests.cli.openai_server import MODEL, OpenAIServer, Reply
from tests.cli.terminal.person import IDLE, Home, Person
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]
LONG = " ".join(f"step-{number}" for number in range(1, 101))


def test_a_thought_is_shown_while_it_is_thought_then_folded_and_whole_by_ctrl_o(person: Person) -> None:
    hold = Event()
    person.asks("Think.", Reply("Decided.", thought=f"First {LONG}\n\nSo be it.", hold=hold))
    person.sees("^First$")
    hold.set()
    shown = person.sees("^Decided.")
    assert "thought: First step-1 step-2" in shown
    assert "more characters; Ctrl-O shows all)" in shown
    assert "step-99" not in shown
    person.presses("C-o")
    person.sees("^reasoning$(.*\n)*.*step-99(.*\n)*So be it.$")
    person.presses("q")
    person.sees(IDLE)
    person.asks("Again.", "Yes.")

    person.sees("^Yes.")
    assert "step-1" not in json.dumps(person.server.requests[-1].body), "it is not sent again"


def test_a_thought_that_is_stopped_is_shown_and_not_kept_as_an_answer(person: Person) -> None:
    person.asks("Think.", Reply("Never.", thought="Well now", hold=Event()))
    person.sees("^Well$")
    person.presses("Escape")
    person.sees("^thought: Well$")
    person.sees("^Stopped. What is done is kept.")
    person.asks("Again.", "Yes.")

    person.sees("^Yes.")
    assert person.server.requests[-1].texts("assistant") == []


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ("folded", "thought: First step-1 (.*\n)*.*; /result shows all.*\n"),
        ("all", "(.*\n)*.*step-100$"),
        ("off", ""),
    ],
)
def test_plain_lines_show_as_much_of_a_thought_as_was_set(
    home: Home, server: OpenAIServer, chosen: str, shown: str
) -> None:
    (home.home / "settings.toml").write_text(f"reasoning = '{chosen}'\n")
    with home.sit_down("--plain") as person:
        person.sees("^Ready.")
        person.asks("Think.", Reply("Decided.", thought=f"First {LONG}"))
        person.sees(f"{shown}(.*\n)*Decided." if chosen != "off" else "^Decided.")
        assert ("step-1" in person.terminal.screen()) == (chosen != "off")
    (home.home / "settings.toml").unlink()


TASK = """
import os, sys
from deepagents_cli.__main__ import main
os.chdir(sys.argv[1])
sys.exit(main(sys.argv[2:]))
"""


def test_a_task_gives_thoughts_as_events_and_as_a_line(
    home: Home, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home.home))
    monkeypatch.setenv("DEEPAGENTS_STATE", str(home.home / "state"))
    monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", server.address)
    options = ("--model", f"local-server:{MODEL}")

    def run(*further: str) -> str:
        server.then(Reply("Decided.", thought="Let me see."))
        ended = programs.run(TASK, str(home.directory), "run", *options, "Think.", *further)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    events = [json.loads(line) for line in run("--json").splitlines()]
    thoughts = [each["text"] for each in events if each["type"] == "reasoning"]
    assert "".join(thoughts) == "Let me see."
    assert "thought: Let me see.\nDecided." in run().replace("\n\n", "\n")
    assert run("-q") == "Decided.\n"
