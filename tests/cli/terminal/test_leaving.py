"""A person leaves, or a process is killed, and the conversation goes on; a directory is trusted or not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from threading import Event

import pytest

from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import MODEL, OpenAIServer, Reply, call
from tests.cli.terminal.person import (
    FILES,
    QUESTION,
    Home,
    Person,
    find_screen,
    find_worker,
    kill,
    wait_for_end,
)
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, pytest.mark.slow]
OPEN = f"deepagents --model local-server:{MODEL}"
READY = f"{MODEL} in "
SHELL = r"^\$ $|^\$$"
HOOK = '[hooks]\nend_of_turn = ["touch hooked"]\n'


@pytest.fixture(scope="module")
def sitting(tmp_path_factory: pytest.TempPathFactory, server: OpenAIServer) -> Iterator[Person]:
    """A person at a shell, in a directory that brings a hook; the stories below are one after the other."""
    files = {**FILES, ".deepagents/settings.toml": HOOK}
    home = Home(tmp_path_factory.mktemp("shell"), server, files)
    bin = home.home / "bin"
    bin.mkdir()
    program = bin / "deepagents"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(home.python)} -m deepagents_cli "$@"\n')
    program.chmod(0o755)
    with home.sit_down(shell=True) as person:
        person.sees(SHELL)
        yield person


@pytest.fixture
def shell(sitting: Person, request: pytest.FixtureRequest) -> Iterator[Person]:
    """The same person, if the stories before have ended well: each begins where the last one has ended."""
    if sitting.lost:
        pytest.fail("an earlier story has failed, so this one cannot begin")
    failures = request.session.testsfailed
    yield sitting
    sitting.lost = request.session.testsfailed > failures


def test_what_a_directory_brings_is_not_run_without_trust(shell: Person) -> None:
    shell.enters(OPEN)
    shell.sees(r"^Do you trust .*/kitchen\? It brings what can run:\nhook end_of_turn: touch hooked")
    shell.answers("n")
    shell.sees(READY)
    shell.asks("Hello?", "Hello.")
    shell.sees("^Hello.")
    shell.sees_gone("Esc stops")

    assert not (shell.directory / "hooked").exists()


def test_a_killed_worker_is_started_again_by_the_next_message(shell: Person) -> None:
    shell.asks("Tell me a story.", Reply("Once upon", hold=Event()))
    shell.sees("^Once$")
    shell.enters("And then?")
    shell.sees("^queued: And then")
    # The worker does one after the other, so when this is answered, it has kept the text.
    shell.enters("/memory")
    shell.sees("^The model reads at each start")
    kill(find_worker(shell))
    shell.sees("^The agent's process ")
    shell.sees("^Or go on later with: deepagents --continue")
    shell.asks("Are you there?", "Yes, again.")
    shell.sees(QUESTION)
    shell.answers("y")

    shell.sees("^Yes, again.")
    users = shell.server.requests[-1].texts("user")
    assert users == ["Hello?", "Tell me a story.", "And then?", "Are you there?"]
    shown = shell.terminal.screen(history=True)
    assert (shown.count("› Hello?"), shown.count("Send an empty line")) == (1, 0)
    shell.sees_gone("Esc stops")
    assert (shell.directory / "hooked").exists()


def test_ctrl_z_leaves_the_shell_its_terminal_and_fg_goes_on(shell: Person) -> None:
    shell.terminal.type("half a line")
    shell.presses("C-z")
    shell.sees("Stopped")
    shell.enters("clear; echo at the shell")
    shell.sees("^at the shell")
    shell.enters("fg")

    shell.sees("^› half a line$")
    shell.presses("C-u")


def test_ctrl_c_twice_leaves_with_a_line_that_goes_on(shell: Person) -> None:
    shell.presses("C-c")
    shell.sees("Ctrl-C again leaves")
    shell.presses("C-c")
    line = re.search(
        r"^Go on with: (\S+ --continue) \(or: (.*)\)$", shell.sees(r"^Go on with: .*\n\$"), re.MULTILINE
    )
    assert line
    shell.enters("clear")
    shell.sees_gone("^Go on with")

    assert line[1] == "deepagents --continue"
    shell.enters(f"{line[2]} --model local-server:{MODEL}")
    shell.sees("^› Are you there\\?\n\nYes, again.")
    shell.sees(READY)


def test_a_killed_screen_leaves_a_session_that_goes_on(shell: Person) -> None:
    shell.asks("Greet.", call("write_file", file_path="new.md", content="hello\n"))
    shell.sees(QUESTION)
    worker = find_worker(shell)
    kill(find_screen(shell))
    shell.sees("Killed")
    wait_for_end(worker)

    # The worker has put the terminal back: what is typed is shown, and Enter ends it.
    shell.enters("clear; stty | grep -o 'isig icanon' || stty -a | grep -o ' icanon'")
    shell.sees(r"^(?: icanon|isig icanon)$")
    shell.server.then("Greeted.")
    shell.enters(f"{OPEN} --continue")
    shell.sees("^The agent wants to write new.md")
    shell.answers("y")
    shell.sees("^✓ write_file new.md\n\nGreeted.")
    assert (shell.directory / "new.md").read_text() == "hello\n"


def test_both_are_killed_and_each_text_is_read_once(shell: Person) -> None:
    shell.asks("Another story.", Reply("Once more", hold=Event()))
    shell.sees("^Once$")
    shell.enters("A short one.")
    shell.sees("^queued: A short one.")
    shell.enters("/memory")
    shell.sees("^The model reads at each start")
    worker = find_worker(shell)
    kill(find_screen(shell))
    kill(worker)
    shell.sees("Killed")
    # Nothing is left that could put the terminal back, and Enter does not end a line.
    shell.terminal.type("stty sane; clear")
    shell.presses("C-j")
    shell.sees_gone("Killed")

    shell.enters(f"{OPEN} --continue")
    shell.sees("^The last step was interrupted. Send an empty line")
    shell.server.then("The short one.")
    shell.presses("Enter")
    shell.sees("^The short one.")
    assert shell.server.requests[-1].texts("user")[-2:] == ["Another story.", "A short one."]
    shell.enters("/quit")
    shell.sees(r"^Go on with: deepagents --continue .*\n\$")


@needs_sandbox
def test_a_command_that_was_cut_off_is_seen_to_run_as_it_begins_again(shell: Person) -> None:
    command = "echo busy; until test -e carry-on; do sleep 0.05; done; rm carry-on"
    shell.enters(f"{OPEN} --auto")
    shell.sees(READY)
    shell.asks("Wait for it.", call("execute", command=command))
    shell.sees("^ +busy$")
    worker = find_worker(shell)
    kill(find_screen(shell))
    kill(worker)
    shell.sees("Killed")
    shell.terminal.type("stty sane; clear")
    shell.presses("C-j")
    shell.sees_gone("Killed")

    shell.enters(f"{OPEN} --auto --continue")
    shell.sees("^The last step was interrupted. Send an empty line")
    shell.presses("Enter")
    shell.sees(r"^\S execute echo busy; until .*\n +busy$")
    shell.server.then("It is there.")
    (shell.directory / "carry-on").touch()
    shell.sees("^✓ execute echo busy; until .*\n\nIt is there.")
    shell.enters("/quit")
    shell.sees(r"^Go on with: deepagents --continue .*\n\$")
