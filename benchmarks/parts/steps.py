"""What the loop costs a step, and whether that grows with the length of the run."""

from __future__ import annotations

from benchmarks.contenders import BARE, OURS, REFERENCE, agent_of, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

SAVERS = {"none": "no checkpointer", "awaited": "awaited, no checkpointer", "memory": "InMemorySaver"}
MOST = {"none": 1.5, "awaited": 2, "memory": 2}
"""How many times a step of the bare loop a step may cost."""
FLAT = 1.25


def plan(size: Size) -> Part:
    """Run agents of several lengths, without a checkpointer and with one in memory."""
    jobs = [
        Job(f"{saver} {length}", each, module(python_of(each), "steps", agent_of(each), saver, length))
        for saver in SAVERS
        for length in size.lengths
        for each in size.contenders
    ]
    return Part(jobs, [_table(size, saver) for saver in SAVERS])


def _table(size: Size, saver: str) -> Table:
    said = SAVERS[saver]
    rows = [Row(f"{length} steps", f"{saver} {length} step") for length in size.lengths]
    first, last = rows[0], rows[-1]
    growth = Row(f"growth from {size.lengths[0]} to {size.lengths[-1]} steps", last.measure, first.measure)
    beside_bare = [
        Target(
            f"a step of {row.label}, {said}, beside create_agent",
            (row.measure, OURS),
            (row.measure, BARE),
            MOST[saver],
        )
        for row in rows
        if BARE in size.contenders
    ]
    flat = Target(f"{growth.label}, {said}", (last.measure, OURS), (first.measure, OURS), FLAT)
    return Table(
        f"A step, {said}",
        "CPU milliseconds a step",
        size.contenders,
        [*rows, growth],
        ratios=[(OURS, each) for each in (BARE, REFERENCE) if each in size.contenders],
        targets=[*beside_bare, flat],
    )
