"""How long it takes to create an agent."""

from __future__ import annotations

from benchmarks.contenders import BARE, OURS, REFERENCE, agent_of, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

MOST = {0: 0.3, 20: 0.1}
"""The share of the reference that creation may take with so many subagents; with any other number, half."""


def plan(size: Size) -> Part:
    """Create agents with and without subagents, then use one."""
    jobs = [
        Job(f"{what} {workers}", each, module(python_of(each), "creation", agent_of(each), what, workers))
        for what in ("created", "used")
        for workers in size.workers
        for each in size.contenders
        if each != BARE or workers == 0
    ]
    return Part(jobs, [_table(size)])


def _table(size: Size) -> Table:
    rows = [
        row
        for workers in size.workers
        for row in (
            Row(f"{workers} subagents, first in the process", f"created {workers} first"),
            Row(f"{workers} subagents, each further one", f"created {workers} next"),
            Row(f"{workers} subagents, up to the end of a first run that uses one", f"used {workers} used"),
        )
    ]
    targets = [
        Target(
            f"{row.label}, beside the reference",
            (row.measure, OURS),
            (row.measure, REFERENCE),
            MOST.get(int(row.measure.split()[1]), 0.5) if row.measure.startswith("created") else 0.5,
        )
        for row in rows
        if REFERENCE in size.contenders and row.measure != "used 0 used"
    ]
    return Table(
        "Create an agent",
        "CPU milliseconds",
        size.contenders,
        rows,
        ratios=[(OURS, each) for each in (BARE, REFERENCE) if each in size.contenders],
        targets=targets,
        notes=[
            "create_agent has one write tool and no subagents. The first run hands an errand to a subagent,"
            " or writes one file where there are none.",
        ],
    )
