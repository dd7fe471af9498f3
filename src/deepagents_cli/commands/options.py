"""Describe the options that several commands have."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deepagents_cli import terminal
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.text import one_line


def add_model(parser: argparse.ArgumentParser) -> None:
    """Let the model be named."""
    parser.add_argument(
        "--model", metavar="PROVIDER:NAME", help="the model, such as anthropic:NAME or local-server:NAME"
    )


def add_debug(parser: argparse.ArgumentParser) -> None:
    """Let a failure be shown whole."""
    parser.add_argument("--debug", action="store_true", help="show the traceback when something fails")


def read_directory(named: str | Path) -> Path:
    """Return the directory that was named.

    Raises:
        CommandError: for what is not a directory.
    """
    directory = Path(named).expanduser().resolve()
    if not directory.is_dir():
        raise CommandError(f"{str(named)!r} is not a directory")
    return directory


def say(text: str) -> int:
    """Write a line; return the exit code of what is done."""
    sys.stdout.write(f"{one_line(text)}\n")
    return Exit.DONE


def ask(question: str) -> bool:
    """Ask a person at the terminal for a yes or a no.

    Raises:
        CommandError: where there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError("there is no terminal to ask on; agree to what is shown with --yes", Exit.USAGE)
    _, begun = terminal.take_typed_ahead(terminal.READING)
    while True:
        sys.stdout.write(f"{question} [y]es, [n]o ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        answer, begun = (begun + line).strip().lower(), ""
        # A line of other words is not an answer, and the end of input is not an agreement.
        if not line or answer in ("y", "yes", "n", "no"):
            return answer in ("y", "yes") and bool(line)
