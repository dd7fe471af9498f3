"""What the tokens of a long session cost, compactions included, where a provider caches what it was sent."""

from __future__ import annotations

from benchmarks.contenders import OURS, REFERENCE, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

MOST = {200_000: 0.75, 64_000: 0.8}
"""By the window of the model, how many times the price of the reference a session may cost."""
NOT_SERVED = 5.0


def plan(size: Size) -> Part:
    """Run one session in each window; it costs the same every time."""
    jobs = [
        Job(f"session in {window}", each, module(python_of(each), "session", size.session, window))
        for window in MOST
        for each in size.deep
    ]
    return Part(jobs, [_prices(size), _not_served(size)], exact=True)


def _prices(size: Size) -> Table:
    rows = [Row(f"a window of {window:,} tokens", f"session in {window} price") for window in MOST]
    targets = [
        Target(
            f"a session in {row.label}, beside the reference",
            (row.measure, OURS),
            (row.measure, REFERENCE),
            most,
        )
        for row, most in zip(rows, MOST.values(), strict=True)
        if REFERENCE in size.deep
    ]
    counts = [
        Row(f"summaries in {window:,} tokens", f"session in {window} summaries", counts=True)
        for window in MOST
    ]
    return Table(
        f"The tokens of a session of {size.session} steps",
        "millions of a fresh token's price",
        size.deep,
        [*rows, *counts],
        ratios=[(OURS, each) for each in size.deep if each != OURS],
        targets=targets,
        notes=[
            "A fresh token costs 1, one from the cache 0.1, one that is written 5; a token is 4 characters."
            " What begins like any earlier request comes from the cache, counted in whole messages."
        ],
    )


def _not_served(size: Size) -> Table:
    rows = [Row(f"a window of {window:,} tokens", f"session in {window} not served") for window in MOST]
    return Table(
        "What was sent again, and not served from the cache",
        "percent",
        size.deep,
        rows,
        targets=[
            Target(f"sent again and not served, {row.label}", (row.measure, OURS), None, NOT_SERVED)
            for row in rows
        ],
    )
