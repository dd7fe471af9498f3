"""Starts the command with the scripted worker in the place of the real one: `python start.py ARGUMENTS`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from deepagents_cli.commands.args import parse
from deepagents_cli.commands.chat import run
from deepagents_cli.errors import ErrorBoundary


def converse(words: Sequence[str]) -> int:
    """Run the command."""
    arguments = parse(words)
    with ErrorBoundary(debug=arguments.debug) as boundary:
        boundary.code = run(arguments, worker=[sys.executable, str(Path(__file__).parent / "worker.py")])
    return boundary.code


if __name__ == "__main__":
    sys.exit(converse(sys.argv[1:]))
