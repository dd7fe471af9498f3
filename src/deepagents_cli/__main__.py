"""Run a command and turn whatever ends it into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from deepagents_cli.args import parse
from deepagents_cli.rim import Rim


def main(argv: Sequence[str] | None = None, *, model: Any = None) -> int:
    """Run the command line; `model`, a chat model, takes the place of whatever `--model` would name."""
    arguments = parse(argv)
    with Rim(debug=arguments.debug) as rim:
        rim.code = _command(arguments.command)(arguments, model=model)
    return rim.code


def _command(name: str) -> Any:
    from deepagents_cli.commands import first_run, models, run

    return {"run": run.run, "models": models.run, "first-run": first_run.run}[name]


if __name__ == "__main__":
    sys.exit(main())
