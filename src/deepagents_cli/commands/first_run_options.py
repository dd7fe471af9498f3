"""Describe the options of `deepagents first-run`."""

from __future__ import annotations

from typing import Any

from deepagents_cli.commands.options import add_debug, add_model


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    first = commands.add_parser(
        "first-run",
        help="watch an agent do a small real job on a throw-away copy of example files",
        description=(
            "Watch an agent do a small real job on a throw-away copy of example files, see what changed, and "
            "whether it got done. Without a model or a key, a small local model is fetched first."
        ),
    )
    add_model(first)
    add_debug(first)
