"""Say what is found here, what is missing, and how to get it: `deepagents doctor`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.project.checks import describe, is_ready
from deepagents_cli.project.machine import examine


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Write the report; return 0 when a task could run here, else 1."""
    directory = Path(arguments.dir).expanduser().resolve()
    if not directory.is_dir():
        raise CommandError(f"{str(arguments.dir)!r} is not a directory")
    checks = examine(directory)
    ready = is_ready(checks)
    if arguments.json:
        report = {"ready": ready, "checks": [asdict(each) for each in checks]}
        sys.stdout.write(f"{json.dumps(report, indent=2)}\n")
    else:
        sys.stdout.write(f"{describe(checks)}\n")
    return Exit.DONE if ready else Exit.FAILED
