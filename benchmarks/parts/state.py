"""Whether a write or an edit in state costs more when there are many files."""

from __future__ import annotations

from benchmarks.contenders import OURS, REFERENCE, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

FEW = 100
FLAT = 1.25
SHARE = 2


def plan(size: Size) -> Part:
    """Write and edit beside few files and beside many."""
    counts = (FEW, size.files // SHARE)
    jobs = [
        Job(f"state {count}", each, module(python_of(each), "state", count))
        for count in counts
        for each in size.deep
    ]
    few, many = counts
    rows = [
        Row(f"{work}, {count:,} files", f"state {count} {work}")
        for work in ("write", "edit")
        for count in counts
    ]
    growth = [
        Row(f"{work}, growth from {few:,} to {many:,} files", f"state {many} {work}", f"state {few} {work}")
        for work in ("write", "edit")
    ]
    table = Table(
        f"{many:,} files in state",
        "milliseconds a step",
        size.deep,
        [*rows, *growth],
        ratios=[(OURS, each) for each in size.deep if each == REFERENCE],
        targets=[
            Target(f"{row.label}, in state", (row.measure, OURS), (str(row.under), OURS), FLAT)
            for row in growth
        ],
    )
    return Part(jobs, [table])
