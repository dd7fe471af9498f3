"""Say what is found here, what is missing, and how to get it: `deepagents doctor`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import asdict
from typing import Any

from deepagents_cli.commands.options import add_debug, read_directory
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import Exit

with imported_when_run():
    from deepagents_cli.project import checks, machine


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    doctor = commands.add_parser(
        "doctor",
        help="say what is found here, what is missing, and how to get it",
        description="Say what is found here, what is missing, and how to get it. Code 0: a task could run.",
    )
    doctor.add_argument("--dir", default=".", metavar="DIR", help="the directory of the project (default: .)")
    doctor.add_argument("--json", action="store_true", help="write JSON")
    add_debug(doctor)


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Write the report; return 0 when a task could run here, else 1."""
    found = machine.examine(read_directory(arguments.dir))
    ready = checks.is_ready(found)
    if arguments.json:
        report = {"ready": ready, "checks": [asdict(each) for each in found]}
        sys.stdout.write(f"{json.dumps(report, indent=2)}\n")
    else:
        sys.stdout.write(f"{checks.describe(found)}\n")
    return Exit.DONE if ready else Exit.FAILED
