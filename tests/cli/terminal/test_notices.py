"""A person who looks elsewhere is called back when the conversation waits or is done, and nobody else."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deepagents_cli.protocol import Idle, Working
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.notify import Notifier
from tests.cli.openai_server import OpenAIServer, call
from tests.cli.terminal.person import QUESTION, Home, Person
from tests.cli.tmux import PATIENCE, needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]
NONE: Mapping[str, str] = {}
GAINED, LOST = ("-H", "1b", "5b", "49"), ("-H", "1b", "5b", "4f")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """What the terminal was sent."""
    return tmp_path / "written"


@contextmanager
def sitting(
    home: Home, written: Path, settings: str, variables: Mapping[str, str] = NONE
) -> Generator[Person]:
    (home.home / "settings.toml").write_text(settings)
    place: Any = {"columns": 120, "rows": 40, **variables}
    with home.sit_down(**place) as person:
        person.sees("scripted in\\b")
        person.terminal.record(written)
        yield person
    (home.home / "settings.toml").unlink()


def rings(written: Path, sequence: bytes, times: int) -> None:
    """Wait until a sequence was written so often, and no more."""
    end = time.monotonic() + PATIENCE
    while (found := written.read_bytes().count(sequence)) < times:
        assert time.monotonic() < end, f"{sequence!r} came {found} times"
        time.sleep(0.05)
    assert found == times


def test_the_bell_rings_where_the_window_has_no_focus(
    home: Home, server: OpenAIServer, written: Path
) -> None:
    with sitting(home, written, "") as person:
        person.asks("Hi.", "One.")
        person.sees("^One.")
        person.presses(*GAINED)
        person.asks("Hi.", "Two.")
        person.sees("^Two.")
        assert b"\a" not in written.read_bytes(), "who looks at it hears nothing"
        person.presses(*LOST)
        person.asks("Hi.", call("write_file", file_path="bell.md", content="x\n"), "Three.")
        person.sees(QUESTION)
        rings(written, b"\a", 1)
        person.enters("y")
        person.sees("^Three.")
        rings(written, b"\a", 2)
        assert "[O" not in person.terminal.screen(history=True), "a report is not a key"


def test_a_desktop_notice_goes_to_a_terminal_that_takes_it(
    home: Home, server: OpenAIServer, written: Path
) -> None:
    with sitting(home, written, "notify = 'desktop'", {"TMUX": "", "TERM_PROGRAM": "WezTerm"}) as person:
        person.presses(*LOST)
        person.asks("Hi.", "One.")
        person.sees("^One.")
        rings(written, b"\x1b]9;deepagents is done in kitchen\a", 1)


def test_a_notice_within_tmux_is_a_bell_and_off_is_off(
    home: Home, server: OpenAIServer, written: Path
) -> None:
    with sitting(
        home, written, "notify = 'desktop'", {"TMUX": "/tmp/x", "TERM_PROGRAM": "WezTerm"}
    ) as person:
        person.presses(*LOST)
        person.asks("Hi.", "One.")
        person.sees("^One.")
        rings(written, b"\a", 1)
    os.truncate(written, 0)
    with sitting(home, written, "notify = 'off'") as person:
        person.presses(*LOST)
        person.asks("Hi.", "One.")
        person.sees("^One.")
        person.asks("Hi.", "Two.")
        person.sees("^Two.")
        assert b"\a" not in written.read_bytes()
        assert b"\x1b[?1004h" not in written.read_bytes()


@pytest.mark.parametrize(("seconds", "rung"), [(19.0, ""), (21.0, "\a")])
def test_where_the_focus_is_not_known_it_rings_after_long_work(seconds: float, rung: str) -> None:
    times = [0.0]
    talk = Chat(
        lambda message: None,
        set_theme=lambda theme: None,
        leave=lambda code: None,
        clear=lambda: None,
        clock=lambda: times[0],
    )
    written: list[str] = []
    notifier = Notifier("bell", "kitchen", written.append, {})
    for message, now in ((Working(), 0.0), (Idle("done"), seconds)):
        times[0] = now
        talk.take(message)
        notifier.see(talk, message)

    assert "".join(written) == rung
