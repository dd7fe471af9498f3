"""Start to end of `true`: on this machine as it is, and confined."""

from __future__ import annotations

import inspect
import sys

from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job
from deepagents.backends import LocalSandbox

PLAIN, SHELL, CONFINED, NAMED, SESSION = (
    "subprocess",
    "LocalShellBackend",
    "LocalSandbox",
    "with named hosts",
    "in a session",
)
MOST_CONFINED, MOST_MORE_IN_A_SESSION = 40, 5
ROWS = {
    "first": "the first, with the making of the backend",
    "next": "each further one",
    "hundredth": "the hundredth",
    "four": "four at once",
}


def ways() -> tuple[str, ...]:
    """Name the ways to run a command that there are here."""
    if LocalSandbox.available() is not None:
        return (PLAIN, SHELL)
    has_sessions = "session" in inspect.signature(LocalSandbox).parameters
    return (PLAIN, SHELL, CONFINED, NAMED, *([SESSION] if has_sessions else []))


def plan(size: Size) -> Part:
    """Run the command one hundred times in every way, and four at once."""
    del size
    found = ways()
    jobs = [Job("commands", each, module(sys.executable, "commands", each)) for each in found]
    usual = "commands next"
    targets = [
        Target("a confined command", (usual, CONFINED), None, MOST_CONFINED),
        Target(
            "a command in a session, beside LocalShellBackend",
            (usual, SESSION),
            (usual, SHELL),
            MOST_MORE_IN_A_SESSION,
            added=True,
        ),
    ]
    table = Table(
        "A command, start to end of `true`",
        "milliseconds",
        found,
        [Row(label, f"commands {measure}") for measure, label in ROWS.items()],
        ratios=[(CONFINED, each) for each in (PLAIN, SHELL) if CONFINED in found],
        targets=[each for each in targets if each.over[1] in found],
        notes=[
            "Each further one is the median of a hundred. Four at once is the time until the last of them"
            " ends."
        ],
    )
    return Part(jobs, [table])
