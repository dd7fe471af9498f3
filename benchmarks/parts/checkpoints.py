"""What a checkpointer holds after so many steps, and whether that grows as the steps or as their square."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from benchmarks.contenders import OURS, REFERENCE, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job
from tests import postgres

SAVERS = {"memory": "InMemorySaver", "sqlite": "SQLite", "postgres": "PostgreSQL"}
LINEAR = 1.1
_DOUBLINGS = 5


@contextmanager
def database() -> Generator[str | None]:
    """Run a PostgreSQL and say how to reach it; `None` where its programs are not installed."""
    if postgres.missing():
        yield None
        return
    with postgres.server() as place:
        yield place


def plan(size: Size, place: str | None) -> Part:
    """Run agents that write and delegate, on each saver; the longest run is twice that of the other parts."""
    longest = 2 * max(size.lengths)
    marks = [longest // 2**at for at in reversed(range(_DOUBLINGS)) if longest // 2**at > 0]
    savers = [kind for kind in SAVERS if kind != "postgres" or place]
    jobs = [
        Job(f"held {kind}", each, module(python_of(each), "checkpoints", "plain", kind, place or "", *marks))
        for kind in savers
        for each in size.deep
    ]
    jobs += [
        Job(
            f"compacted {kind}",
            OURS,
            module(python_of(OURS), "checkpoints", "compacting", kind, place or "", *marks),
        )
        for kind in savers
    ]
    tables = [_table(size, kind, marks) for kind in savers]
    return Part(jobs, [*tables, *(_compacted(kind, marks) for kind in savers)], exact=True)


def _compacted(kind: str, marks: list[int]) -> Table:
    name, said = f"compacted {kind}", SAVERS[kind]
    return Table(
        f"What {said} holds of a run that is compacted",
        "kilobytes",
        [OURS],
        [
            *(Row(f"after {each} steps", f"{name} {each}") for each in marks),
            Row("grows as the steps to the power of", f"{name} growth"),
        ],
        targets=[
            Target(
                f"power of the steps with which {said} grows when a run is compacted, beside 1",
                (f"{name} growth", OURS),
                (f"{name} linear", OURS),
                LINEAR,
            )
        ],
        notes=["A step looks something up; the model's window holds a few dozen results."],
    )


def _table(size: Size, kind: str, marks: list[int]) -> Table:
    growth, linear = f"held {kind} growth", f"held {kind} linear"
    said = SAVERS[kind]
    return Table(
        f"What {said} holds of a run",
        "kilobytes",
        size.deep,
        [
            *(Row(f"after {each} steps", f"held {kind} {each}") for each in marks),
            Row("grows as the steps to the power of", growth),
        ],
        ratios=[(OURS, each) for each in size.deep if each == REFERENCE],
        targets=[
            Target(
                f"power of the steps with which {said} grows, beside 1",
                (growth, OURS),
                (linear, OURS),
                LINEAR,
            )
        ],
        notes=["A step writes a small file; each tenth lets a subagent edit one."],
    )
