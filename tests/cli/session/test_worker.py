"""A conversation by the protocol: answers, approvals, what is typed meanwhile, and Esc."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import termios
import tty
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from deepagents.events import Token, ToolFinished
from deepagents.limits import Price
from deepagents_cli.protocol import (
    Ask,
    Close,
    Happened,
    Idle,
    Notice,
    Preview,
    Queued,
    Refused,
    Status,
    Stop,
    TakeBack,
    TakenBack,
    Working,
)
from tests.cli.openai_server import OpenAIServer, Reply, call
from tests.cli.session.conftest import OPENING, TERMINAL, StartWorker, Worker


def test_a_change_is_asked_about_and_made_as_it_was_edited(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    server.then(
        call("write_file", file_path="new.md", content="hello\n"),
        call("write_file", file_path="other.md", content="no\n"),
        "Written.",
    )
    ready = worker.open()
    assert worker.wait(Status).mode == "ask"
    assert (ready.model, ready.resumed) == ("local-server:scripted", False)

    worker.say("Write a file.")
    worker.wait(Working)
    asked = worker.wait(Ask)
    assert asked.title == "wants to write new.md"
    assert "+hello" in asked.details
    worker.send(Preview(ask=asked.id, text="good morning\n"))
    again = worker.wait(Ask)
    assert again.id == asked.id
    assert "+good morning" in again.details
    worker.decide(asked, "approve", rule=next(iter(again.rules)))
    second = worker.wait(Ask)
    worker.decide(second, "reject", message="not this")

    assert worker.answer() == "Written."
    lines = [each.line for each in worker.all(Happened) if isinstance(each.event, ToolFinished)]
    assert lines[1] is None, "the person knows why"
    assert worker.last(Idle).end == "done"
    assert (directory / "new.md").read_text() == "good morning\n"
    assert not (directory / "other.md").exists()
    assert "not this" in server.requests[-1].last
    assert worker.command("permissions").choices[1].value == f"edit: {directory}/new.md"
    worker.send(Close())
    assert worker.wait_for_end() == 0


def test_what_is_typed_while_the_agent_works_reaches_it_at_its_next_step(
    worker: Worker, server: OpenAIServer
) -> None:
    hold = Event()
    server.then(Reply("Let me look.", calls=[("ls", {"path": "."})], hold=hold), "Yes, three.")
    worker.open()

    worker.say("Count the files.")
    worker.event(Token)
    worker.say("Hidden ones too.")
    worker.say("Oh, forget this.")
    assert worker.wait(Queued, texts=["Hidden ones too.", "Oh, forget this."])
    worker.send(TakeBack())
    assert worker.wait(TakenBack).texts == ["Hidden ones too.", "Oh, forget this."]
    worker.say("Hidden ones as well.")
    worker.wait(Queued, texts=["Hidden ones as well."])
    hold.set()

    assert worker.answer() == "Yes, three."
    assert server.requests[-1].texts("user") == ["Count the files.", "Hidden ones as well."]
    assert server.requests[-1].last == "Hidden ones as well."


def test_esc_keeps_what_was_written_and_the_next_text_goes_on(worker: Worker, server: OpenAIServer) -> None:
    server.then(Reply("Once upon a time", hold=Event()), "Another story.")
    worker.open()
    worker.say("Tell me a story.")
    worker.event(Token)

    worker.send(Stop())

    assert worker.wait(Idle).end == "stopped"
    assert worker.turn("Another one, please.").end == "done"
    assert server.requests[-1].texts("assistant") == ["Once\n\n[The person stopped the answer here.]"]
    assert server.requests[-1].texts("user") == ["Tell me a story.", "Another one, please."]


def test_what_is_sent_right_behind_esc_begins_a_turn(worker: Worker, server: OpenAIServer) -> None:
    server.then(Reply("Once upon a time", hold=Event()), "Another story.")
    worker.open()
    worker.say("Tell me a story.")
    worker.event(Token)

    worker.send(Stop())
    worker.say("Another one, please.")

    assert worker.wait(Idle).end == "stopped"
    assert worker.answer() == "Another story."


def test_a_text_that_cannot_be_taken_comes_back(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    server.then("Hello.")
    worker.open()

    # As on a disk without room.
    resource.prlimit(worker.process.pid or 0, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    worker.say("See this.")
    assert worker.wait(Refused).texts == ["See this."]
    assert worker.wait(Queued).texts == []
    assert "sessions cannot be kept" in worker.wait(Notice).text.lower()
    resource.prlimit(
        worker.process.pid or 0, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    worker.say("Hi.")
    assert worker.answer() == "Hello."


def test_tokens_cost_and_context_are_shown(worker: Worker, server: OpenAIServer) -> None:
    server.models.append("gpt-4.1")
    server.then(Reply("Hello.", usage=(100_000, 1_000)))
    worker.open(model="gpt-4.1")

    worker.turn("Hi.")

    shown = worker.status(cost=0)
    assert (shown.input_tokens, shown.output_tokens) == (100_000, 1_000)
    assert shown.context == 101_000 / 1_047_576


def test_a_price_and_an_amount_that_were_typed_end_a_turn(worker: Worker, server: OpenAIServer) -> None:
    server.then(Reply(calls=[("ls", {"path": "."})], usage=(100_000, 1_000)))
    worker.open(price=Price(3, 15), options={**OPENING.options, "money": 0.01})

    assert worker.turn("Look around.").end == "limited"


def _ask_it_to_end(worker: Worker) -> None:
    worker.send(Close())
    worker.wait_for_end()


def _stop(worker: Worker) -> None:
    os.kill(worker.process.pid or 0, signal.SIGTERM)
    worker.wait_for_end()


@pytest.mark.parametrize(("end", "back"), [(Worker.end, True), (_ask_it_to_end, False), (_stop, False)])
def test_the_terminal_is_put_back_for_a_screen_that_is_gone_and_for_no_other(
    start: StartWorker, end: Callable[[Worker], object], back: bool
) -> None:
    ours, screens = pty.openpty()
    tty.setraw(screens)
    # This process, the worker's parent, goes on: so does a screen that is killed while its pipes end.
    worker = start(os.ttyname(screens))
    worker.open(terminal=TERMINAL)
    end(worker)

    modes = termios.tcgetattr(screens)[3]
    for each in (ours, screens):
        os.close(each)
    assert bool(modes & termios.ICANON and modes & termios.ECHO and modes & termios.ISIG) is back


@pytest.mark.slow
def test_the_program_ends_with_its_input() -> None:
    program = [sys.executable, "-m", "deepagents_cli.session"]
    ended = subprocess.run(program, input=b"", capture_output=True, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    alone = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (alone.returncode, alone.stdout) == (2, b"")
    assert b"`deepagents` starts by itself" in alone.stderr
