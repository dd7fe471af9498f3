"""A person at a terminal, the whole program behind it, and a scripted server in the place of a model."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.cli.forked import ForkedTmux, Program
from tests.cli.openai_server import MODEL, Answer, OpenAIServer
from tests.cli.terminal.workers import Workers
from tests.cli.tmux import PATIENCE, Tmux

SOURCES = Path(__file__).resolve().parents[3] / "src"
QUESTION = r"^\[y\]es \[n\]o"
IDLE = r"^› *$"
SIZE = 120, 40
"""Columns and rows of a terminal, unless a story says others."""
FILES: Mapping[str, str] = {
    ".git/HEAD": "ref: refs/heads/topic\n",
    "AGENTS.md": "- Write short lines.\n",
    "notes.md": "first line\nsecond line\n",
    ".deepagents/skills/cook/SKILL.md": "---\nname: cook\ndescription: Cooks.\n---\nCook.",
    ".deepagents/agents/taster.md": "---\nname: taster\ndescription: Tastes dishes.\n---\nYou taste.",
    ".deepagents/commands/greet.md": "---\ndescription: Greets\n---\nGreet $ARGUMENTS.",
}


class Home:
    """A directory to work on, and a home of its own; conversations in it share their sessions."""

    def __init__(
        self, place: Path, server: OpenAIServer, files: Mapping[str, str] = FILES, *, name: str = "kitchen"
    ) -> None:
        self.python = sys.executable
        self.directory = place / name
        self.home = place / "home"
        self.server = server
        self.home.mkdir(parents=True)
        for name, text in files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    @contextmanager
    def sit_down(
        self,
        *arguments: str,
        columns: int = SIZE[0],
        rows: int = SIZE[1],
        shell: bool = False,
        forked: Program | None = None,
        real: bool = False,
        **variables: str,
    ) -> Generator[Person]:
        """Open the conversation in a terminal; `shell` has a shell in it, which the person types at.

        The program and its worker are forked with their imports done, unless they are to be the `real` ones.
        What is `forked` runs in the place of the program.
        """
        environment = {
            "PYTHONPATH": str(SOURCES),
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "DEEPAGENTS_STATE": str(self.home / "state"),
            "DEEPAGENTS_SETTINGS": str(self.home / "settings.toml"),
            "DEEPAGENTS_LOCAL_SERVER": self.server.address,
            "VISUAL": "",
            "EDITOR": "",
            "PS1": "$ ",
            **variables,
        }
        words = ["--model", f"local-server:{MODEL}", *arguments]
        program = ["sh"] if shell else [sys.executable, "-m", "deepagents_cli", *words]
        place: Any = {
            "columns": columns,
            "rows": rows,
            "directory": self.directory,
            "environment": environment,
        }
        with ExitStack() as stack:
            if real or shell:
                terminal = Tmux(program, **place)
            else:
                terminal = ForkedTmux(forked or stack.enter_context(Workers()), words, **place)
            yield Person(stack.enter_context(terminal), self)


class Person:
    """Types at a terminal and looks at its screen."""

    def __init__(self, terminal: Tmux, home: Home) -> None:
        self.terminal = terminal
        self.home = home
        self.server = home.server
        self.directory = home.directory
        self.lost = False
        """Whether the next story cannot begin where it should, so that it would wait for long."""
        self.sees = terminal.wait_for
        self.sees_gone = terminal.wait_until_gone

    def enters(self, text: str) -> None:
        """Type a text and press Enter."""
        self.terminal.type(text)
        self.terminal.keys("Enter")

    def presses(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self.terminal.keys(*keys)

    def asks(self, text: str, *answers: Answer) -> None:
        """Send a text to the agent, whose model answers so."""
        self.server.then(*answers)
        self.enters(text)

    def answers(self, key: str) -> None:
        """Answer a question by a key and Enter, once it is on the screen and can be answered."""
        self.sees(QUESTION)
        self.enters(key)
        self.sees_gone(QUESTION)

    def begins_anew(self) -> None:
        """Begin a new session in mode ask, on an empty screen."""
        self.sees_gone(f"Esc stops|{QUESTION}")
        self.enters("/mode ask")
        self.sees("^Mode ask: ")
        self.presses("C-l")
        self.sees_gone("^Mode ask: ")
        self.terminal.forget()
        self.enters("/new")
        self.sees(r"^\S+:\S+ in\b")


def kill(pid: int) -> None:
    """Kill a process as nothing can be prepared for."""
    os.kill(pid, signal.SIGKILL)


def find_screen(person: Person) -> int:
    """Return the process of the screen, which the shell has started."""
    return _find_child(person.terminal.pid, b"deepagents_cli")


def find_worker(person: Person) -> int:
    """Return the process of the agent, which the screen has started."""
    return _find_child(find_screen(person), b"deepagents_cli.session")


def wait_for_end(pid: int) -> None:
    """Wait until a process that is nobody's child any more has ended."""
    end = time.monotonic() + PATIENCE
    while _is_running(pid):
        assert time.monotonic() < end, f"{pid} goes on"
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _find_child(pid: int, module: bytes) -> int:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if module in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                return int(child)
        time.sleep(0.05)
    raise AssertionError(f"{pid} has started no {module.decode()}")
