"""Describe the options of `deepagents run`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from deepagents_cli.commands.chat import add_place, add_work


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "run",
        help="let an agent work on a directory",
        description="Let an agent work on a directory. It reads freely and asks before it changes anything.",
    )
    parser.add_argument("task", nargs="*", metavar="TASK", help="what to do; or on standard input")
    add_own_options(parser)


def add_own_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options of a task; they stand behind `deepagents run`, or `deepagents` alone."""
    add_place(parser)
    parser.add_argument(
        "--yes",
        action="store_true",
        help="approve every call without asking, but those about .git, secrets and settings of editors",
    )
    written = parser.add_mutually_exclusive_group()
    written.add_argument("--json", action="store_true", help="write events as JSON, one object a line")
    written.add_argument("-q", "--quiet", action="store_true", help="write the answer alone")
    parser.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="a JSON Schema that the answer fits; it is written as JSON",
    )
    add_work(parser)
