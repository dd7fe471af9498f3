"""A project brings MCP servers: a person sees what would start, asks how they are, and answers them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cli.openai_server import OpenAIServer, call
from tests.cli.terminal.person import Home, Person
from tests.cli.tmux import needs_tmux
from tests.mcp.servers import crooked

pytestmark = [needs_tmux, pytest.mark.slow]


@pytest.fixture
def newcomer(tmp_path: Path, server: OpenAIServer) -> Iterator[Person]:
    """A person who opens a project for the first time; its commands are files, so that lines are short."""
    hotel, frail = crooked("book", call="ask"), crooked("look", call="exit")
    home = Home(tmp_path, server, {"notes.md": "one\n"})
    for name, entry in {"hotel": hotel, "frail": frail}.items():
        words = " ".join(f"'{each}'" for each in [entry["command"], *entry["args"]])
        (home.directory / name).write_text(f"#!/bin/sh\nexec {words}\n")
        (home.directory / name).chmod(0o755)
    entries = {name: {"command": f"./{name}"} for name in ("hotel", "frail")} | {"db": {"command": "no-such"}}
    (home.directory / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))
    with home.sit_down() as person:
        yield person


def test_a_project_s_servers_are_shown_first_listed_and_asked_about(newcomer: Person) -> None:
    newcomer.sees("^Do you trust (.*\n)+server hotel: ./hotel\nserver frail: ./frail\nserver db: no-such\n")
    newcomer.sees(r"^\[y\]es \[n\]o")
    newcomer.enters("y")
    newcomer.sees(r"scripted in\b")
    newcomer.sees(
        "the MCP server 'db' is not there: its process ended with status 127: no-such: No such file"
    )

    newcomer.enters("/mcp")
    newcomer.sees(r"hotel 1 tool \(")
    newcomer.sees(r"db is not there: its process ended with status 127")

    newcomer.asks("Book.", call("mcp__hotel__book"), lambda request: f"It said: {request.last}")
    newcomer.sees("^The agent wants to call mcp__hotel__book")
    newcomer.answers("y")
    newcomer.sees("^The MCP server hotel asks:\n *Sure, the 1. time")
    newcomer.sees(r"^\[1\] Yes \[2\] No \[3\] Decline")
    newcomer.enters("1")
    newcomer.sees('^It said: .*"action": "accept", "content": {"sure": true}')

    newcomer.asks("Look.", call("mcp__frail__look"), call("mcp__frail__look"), "It was not there.")
    newcomer.answers("a")
    newcomer.sees("^Always allow what")
    newcomer.presses("Down", "Enter")
    newcomer.sees("^For how long")
    newcomer.presses("Enter")
    newcomer.sees("^It was not there.")
    newcomer.enters("/mcp frail")
    newcomer.sees("^frail: 1 tool")


def test_esc_cancels_a_server_s_question_and_the_next_esc_stops_the_step(newcomer: Person) -> None:
    newcomer.sees(r"^\[y\]es \[n\]o")
    newcomer.enters("y")
    newcomer.sees("the MCP server 'db' is not there: ")
    newcomer.asks(
        "Book twice.", call("mcp__hotel__book", times=2), lambda request: f"It said: {request.last}"
    )
    newcomer.answers("y")
    newcomer.sees("^The MCP server hotel asks:\n *Sure, the 1. time")
    newcomer.presses("Escape")
    newcomer.sees("^Cancelled. Esc again stops the step.")
    newcomer.sees("^The MCP server hotel asks:\n *Sure, the 2. time")
    newcomer.sees(r"^\[1\] Yes \[2\] No \[3\] Decline")
    newcomer.enters("1")
    newcomer.sees(r'^It said: .*\{"action": "cancel"\}, \{"action": "accept"')

    # An answer that is not at its end stays on a screen that is cleared.
    newcomer.sees_gone("Esc stops")
    newcomer.presses("C-l")
    newcomer.sees_gone("^It said")
    newcomer.terminal.forget()
    newcomer.asks("Book for ever.", call("mcp__hotel__book", times=100))
    newcomer.answers("y")
    newcomer.sees("^The MCP server hotel asks:\n *Sure, the 1. time")
    newcomer.presses("Escape")
    newcomer.sees("^The MCP server hotel asks:\n *Sure, the 2. time")
    newcomer.presses("Escape")
    newcomer.sees("^Stopped. What is done is kept.")


def book(place: Path, server: OpenAIServer, way: str) -> AbstractContextManager[Person]:
    """Sit down at a task, or at a conversation in lines, in which a server will ask."""
    home = Home(place, server, {"notes.md": "one\n"})
    servers = home.home / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"hotel": crooked("book", call="ask")}}))
    server.then(call("mcp__hotel__book", times=3))
    return home.sit_down(way, "--mode", "full", "--mcp", str(servers))


@pytest.mark.parametrize("way", ["--plain", "Book."])
def test_ctrl_c_cancels_a_question_in_lines_and_the_next_one_stops_the_step(
    tmp_path: Path, server: OpenAIServer, way: str
) -> None:
    with book(tmp_path, server, way) as person:
        if way == "--plain":
            person.sees("^Ready.")
            person.enters("Book.")
        person.sees("^The MCP server hotel asks:\n *Sure, the 1. time")
        person.presses("C-c")
        person.sees("Cancelled. Ctrl-C again stops the step.")
        shown = person.sees("^The MCP server hotel asks:\n *Sure, the 2. time")
        assert "Ctrl-C again leaves" not in shown
        person.presses("C-c")
        if way == "--plain":
            person.sees("^Stopped. What is done is kept.")
        else:
            person.sees("^deepagents: stopped")
            assert person.terminal.wait_for_end() == 130


def test_a_task_that_is_terminated_at_a_question_of_a_server_ends(
    tmp_path: Path, server: OpenAIServer
) -> None:
    with book(tmp_path, server, "Book.") as person:
        person.sees("^The MCP server hotel asks:\n *Sure, the 1. time")
        os.kill(person.terminal.pid, signal.SIGTERM)
        person.sees("^deepagents: stopped")
        assert person.terminal.wait_for_end() == 130
