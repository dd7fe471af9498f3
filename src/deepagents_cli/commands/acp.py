"""Serve an editor: `deepagents acp`, by the Agent Client Protocol on standard input and output."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from deepagents_cli.commands.chat import add_mode, add_use, opening_of
from deepagents_cli.commands.options import add_debug, add_model
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit, missing_package
from deepagents_cli.terminal import is_pipe

with imported_when_run():
    import asyncio

_CANNOT: Final = (
    "an editor starts this command, and speaks with it through pipes; docs/concepts/editors.md says how to "
    "set one up"
)


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "acp",
        help="work in an editor that speaks the Agent Client Protocol",
        description=(
            "Serve an editor, which starts this command, by the Agent Client Protocol. The editor names the "
            "directory of each session."
        ),
    )
    # What a conversation has besides, and an editor says itself.
    parser.set_defaults(yes=False, dir=Path(), thread=None, resume=False)
    add_model(parser)
    add_mode(parser)
    add_use(parser)
    add_debug(parser)


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Serve the editor until it is gone; what else is printed goes to standard error."""
    if not (is_pipe(0) and is_pipe(1)):
        raise CommandError(_CANNOT, Exit.USAGE)
    try:
        from deepagents_cli.views.acp import agent
    except ModuleNotFoundError as error:
        raise missing_package(error, "acp") from error
    # Programs that the agent starts find neither.
    with os.fdopen(os.dup(0), "rb") as given, os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        asyncio.run(agent.serve(opening_of(arguments), given, out))
    return Exit.DONE
