"""Starts the command with the scripted worker in the place of the real one: `python start.py ARGUMENTS`."""

from __future__ import annotations

import sys
from pathlib import Path

from deepagents_cli.commands.args import parse
from deepagents_cli.commands.chat import run
from deepagents_cli.errors import ErrorBoundary

if __name__ == "__main__":
    arguments = parse(sys.argv[1:])
    with ErrorBoundary(debug=arguments.debug) as boundary:
        boundary.code = run(arguments, worker=[sys.executable, str(Path(__file__).parent / "worker.py")])
    sys.exit(boundary.code)
