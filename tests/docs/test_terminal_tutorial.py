"""The hour in the terminal goes as the page says: its lines are typed in tmux, and what it shows is seen."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepagents.backends import LocalSandbox
from tests.architecture.source import ROOT
from tests.cli.openai_server import call, serving
from tests.cli.tmux import Tmux, needs_tmux

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "terminal-tutorial.md").read_text("utf-8")
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

ANSWERS = [
    call("ls", path="."),
    "A list of things to do, and one test of it.",
    call("execute", command="python3 -m unittest"),
    call(
        "present_plan",
        plan="In todo.py, remaining keeps what is done. Turn the condition around.",
    ),
    call(
        "edit_file",
        file_path="todo.py",
        old_string='if each.startswith("x ")',
        new_string='if not each.startswith("x ")',
    ),
    call("execute", command="python3 -m unittest"),
    "The test passes now.",
    call("task", subagent_type="reviewer", description="Read todo.py."),
    call("read_file", file_path="todo.py"),
    "There is no test for an empty list.",
    "There is no test for an empty list.",
    "The list of things to do was mended.",
    "Mend the condition that keeps what is left to do",
]


class Reader:
    """A reader of the page at a shell in tmux."""

    def __init__(self, terminal: Tmux) -> None:
        self._terminal = terminal
        self._in_conversation = False

    def run(self, command: str) -> None:
        """Type what a block for the shell holds."""
        if self._in_conversation:
            self._terminal.wait_for(r"^› *$")
            self._terminal.keys("C-d")
            self._terminal.wait_for(r"^\$ *$")
        self._terminal.paste(command.rstrip("\n"))
        # A shell that takes a paste in brackets waits for this.
        self._terminal.keys("Enter")
        self._in_conversation = command.startswith("deepagents")

    def follow(self, lines: list[str]) -> None:
        """Type what a block holds behind the prompt, and look for the rest."""
        for line in lines:
            if line.startswith("› "):
                # A line typed into a turn would reach the agent in the middle of it.
                self._terminal.wait_until_gone(r"\bworking\b.* stops$")
                self._terminal.wait_for(r"^› *$")
                self._terminal.type(line.removeprefix("› "))
                self._terminal.keys("Enter")
            else:
                self._terminal.wait_for(r"\s+".join(map(re.escape, line.split())), history=True)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader in an empty directory, with a scripted server in the model's place."""
    with serving(*ANSWERS) as server:
        settings = {
            "DEEPAGENTS_LOCAL_SERVER": server.address,
            "DEEPAGENTS_MODEL": "local-server:scripted",
            "DEEPAGENTS_STATE": str(tmp_path / "state"),
            "HOME": str(tmp_path),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "PS1": "$ ",
            "EDITOR": "",
            "VISUAL": "",
        }
        with Tmux(
            ["bash", "--norc", "--noprofile"], rows=60, directory=tmp_path, environment=settings
        ) as terminal:
            terminal.wait_for(r"^\$ *$")
            yield Reader(terminal)


@needs_tmux
@pytest.mark.skipif(LocalSandbox.available() is not None, reason="commands cannot be confined here")
def test_the_hour_goes_as_the_page_says(reader: Reader) -> None:
    for kind, text in BLOCK.findall(PAGE):
        if kind == "sh":
            reader.run(text)
        else:
            reader.follow(text.splitlines())
