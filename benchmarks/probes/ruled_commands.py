"""Milliseconds of this process around `true` in a tree, with the rules of the command line and without."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.probes import times
from deepagents.backends import LocalSandbox
from deepagents.permissions import CommandAccess
from deepagents_cli.approval.guarded import Kind, command_rules

TIMES, FAN = 5, 8
NAMES = (
    "__init__.py", "index.test.ts", "handler_{}.py", "test_handler_{}.py", "util{}.js", "style{}.css",
    "data{}.json", "notes{}.txt", "view{}.html", "README.md",
)  # fmt: skip


def fill(root: Path, directories: int) -> None:
    """Make directories in directories, each with ten files, and a secret in every hundredth."""
    made = [root]
    for number in range(1, directories):
        made.append(made[(number - 1) // FAN] / f"module_{number:05}")
        made[-1].mkdir()
    for number, directory in enumerate(made):
        for name in (*NAMES, *([".env"] if number % max(100, directories // 10) == 0 else [])):
            (directory / name.format(number)).touch()


def spent(sandbox: LocalSandbox, allowed: CommandAccess | None) -> float:
    """Return the median of processor time for a command, start to end."""
    found: list[float] = []
    for _ in range(times(TIMES)):
        start = time.process_time()
        assert sandbox.execute("true", allowed=allowed).exit_code == 0
        found.append((time.process_time() - start) * 1000)
    return statistics.median(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="benchmark-commands-") as directory:
        fill(Path(directory), int(sys.argv[1]))
        with closing(LocalSandbox(directory)) as confined:
            rules = CommandAccess(command_rules(frozenset[Kind]()), is_approved=False)
            confined.execute("true", allowed=rules)
            print(json.dumps({"free": spent(confined, None), "ruled": spent(confined, rules)}))
