"""The conversation in a terminal of its own, with a scripted worker in the place of the agent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.cli.tmux import Tmux

Start: TypeAlias = Callable[..., Tmux]
_SOURCES = Path(__file__).resolve().parents[3] / "src"


@pytest.fixture
def start(directory: Path, state: Path) -> Iterator[Start]:
    """Start conversations; `shell` keeps the terminal open behind them."""
    with ExitStack() as stack:

        def begin(*arguments: str, columns: int = 80, rows: int = 30, **environment: str) -> Tmux:
            program = str(Path(__file__).parent / "start.py")
            variables = {"PYTHONPATH": str(_SOURCES), "DEEPAGENTS_STATE": str(state), "HOME": str(state)}
            terminal = Tmux(
                [sys.executable, program, *arguments],
                columns=columns,
                rows=rows,
                directory=directory,
                environment={**variables, "VISUAL": "", "EDITOR": "", **environment},
            )
            return stack.enter_context(terminal)

        yield begin
