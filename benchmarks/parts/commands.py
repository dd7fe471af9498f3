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
MOST_RULED = {100: 10, 1000: 50, 10_000: 500}
"""Milliseconds that rules may take for a tree with so many directories."""
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
    ruled = _under_rules(size) if CONFINED in found else Part([], [])
    return Part([*jobs, *ruled.jobs], [table, *ruled.tables])


def _under_rules(size: Size) -> Part:
    """Run the command under the rules of the command line, which speak of names at any depth."""
    trees = {f"{count:,} directories": count for count in MOST_RULED if count <= max(100, size.files // 2)}
    jobs = [
        Job("ruled", each, module(sys.executable, "ruled_commands", count)) for each, count in trees.items()
    ]
    table = Table(
        "A confined command in a tree with ten files in each directory",
        "milliseconds of processor time",
        [*trees],
        [Row("no rules", "ruled free"), Row("rules by name", "ruled ruled")],
        targets=[
            Target(
                f"rules by name, in {each}",
                ("ruled ruled", each),
                ("ruled free", each),
                MOST_RULED[count],
                added=True,
            )
            for each, count in trees.items()
        ],
        notes=["Time of the process that starts the command, and looks through the tree before and after."],
    )
    return Part(jobs, [table])
