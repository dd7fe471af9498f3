"""Conversations in terminals of their own, with a scripted worker in the place of the agent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.cli.forked import ForkedTmux
from tests.cli.tmux import Tmux
from tests.cli.views.chat.start import converse

Start: TypeAlias = Callable[..., Tmux]
SOURCES = Path(__file__).resolve().parents[4] / "src"


def begin(stack: ExitStack, directory: Path, state: Path, *arguments: str, **options: Any) -> Tmux:
    """Start a conversation; capitals in the options name variables of its environment.

    What Python reads of these when it starts, as the locale, needs a process that is not `forked`.
    """
    forked = options.pop("forked", True)
    size = {name: options.pop(name) for name in ("columns", "rows") if name in options}
    variables = {"PYTHONPATH": str(SOURCES), "DEEPAGENTS_STATE": str(state), "HOME": str(state)}
    environment = {**variables, "VISUAL": "", "EDITOR": "", **options}
    place: Any = {"directory": directory, "environment": environment, **size}
    if forked:
        return stack.enter_context(ForkedTmux(converse, arguments, **place))
    program = [sys.executable, str(Path(__file__).parent / "start.py"), *arguments]
    return stack.enter_context(Tmux(program, **place))


@pytest.fixture
def start(directory: Path, state: Path) -> Iterator[Start]:
    """Start conversations of its own for a test."""
    with ExitStack() as stack:
        yield lambda *arguments, **options: begin(stack, directory, state, *arguments, **options)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    """One conversation for all tests that leave it as they found it: to start one takes a second."""
    place = tmp_path_factory.mktemp("shared")
    (place / "notes.md").touch()
    (place / "notes.log").touch()
    (place / "two words").mkdir()
    (place / "two words/pans.md").touch()
    (place / ".gitignore").write_text("*.log\n")
    with ExitStack() as stack:
        terminal = begin(stack, place, place / "state", columns=120, rows=40, forked=False)
        terminal.wait_for("test:model")
        yield terminal


@pytest.fixture
def talk(shared: Tmux) -> Tmux:
    """That conversation, with an empty screen."""
    shared.keys("C-u", "C-l")
    shared.wait_for(r"\A\s*›\s*\n")
    return shared
