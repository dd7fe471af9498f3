"""What twenty calls of a tool cost: one in each turn, or all in one program."""

from __future__ import annotations

from benchmarks.contenders import OURS, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

TURNS, PROGRAM = "a turn for each", "one program"
_WAYS = {TURNS: "turns", PROGRAM: "program"}
_QUARTER = 0.25


def plan(size: Size) -> Part:
    """Make twenty calls in both ways."""
    jobs = [Job("code mode", name, module(python_of(OURS), "code_mode", way)) for name, way in _WAYS.items()]
    rows = [
        Row("requests", "code mode requests", counts=True),
        Row("thousands of tokens", "code mode tokens"),
        Row("their price, in thousands of a fresh token's", "code mode price"),
        Row("seconds", "code mode seconds"),
    ]
    table = Table(
        "Twenty calls of a tool",
        "as it says",
        [TURNS, PROGRAM],
        rows,
        ratios=[(PROGRAM, TURNS)],
        targets=[
            Target(
                "tokens of twenty calls in one program",
                ("code mode tokens", PROGRAM),
                ("code mode tokens", TURNS),
                _QUARTER,
            )
        ],
        notes=[
            "Each call returns 1,000 characters. A fresh token costs 1, one from the cache 0.1, one that is"
            " written 5. The model takes 0.2 s for an answer, the tool 0.05 s."
        ],
    )
    return Part(jobs, [table])
