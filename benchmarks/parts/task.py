"""What one task in a script costs from start to end, beside a plain import of what it stands on."""

from __future__ import annotations

import sys

from benchmarks.contenders import COMMAND_HOME, REFERENCE
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

RUN, IMPORTS = "deepagents run", "import langchain.agents, langchain_openai"
MOST = 1_000


def plan(size: Size) -> Part:
    """Run a task with three calls, and the imports alone."""
    alone = REFERENCE in size.contenders
    python = str(COMMAND_HOME / "bin" / "python") if alone else sys.executable
    jobs = [
        Job("task", contender, module(sys.executable, "task", what, python))
        for contender, what in ((RUN, "run"), (IMPORTS, "imports"))
    ]
    table = Table(
        "A task with three calls, from start to end",
        "CPU milliseconds",
        [RUN, IMPORTS],
        [Row("whole process", "task cpu")],
        ratios=[(RUN, IMPORTS)],
        targets=[Target("CPU of a task with three calls", ("task cpu", RUN), None, MOST)],
        notes=[
            "The model is a server on this machine, whose own time is not counted. The command imports fewer"
            " modules of these packages than they do by themselves."
            + " The command lives in an environment of its own, as people install it."
            * alone
        ],
    )
    return Part(jobs, [table])
