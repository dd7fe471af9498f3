"""Describe the options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path

from deepagents_cli.errors import CommandError


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
