"""How long an import takes, and the command's help."""

from __future__ import annotations

import sys

from benchmarks.contenders import BARE, OURS, REFERENCE, plain_python_of, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

HELP, LANGCHAIN = "deepagents --help", "import langchain.agents"


def plan(size: Size) -> Part:
    """Import the factory in each environment; ask for help beside an import of langchain."""
    # What is compared is imported where nothing lies beside it.
    python = plain_python_of if REFERENCE in size.contenders else python_of
    jobs = [Job("import", each, module(python(each), "imports", each)) for each in size.contenders]
    jobs += [
        Job("help", HELP, [sys.executable, "-m", "deepagents_cli", "--help"], timed=True),
        Job("help", LANGCHAIN, [sys.executable, "-c", "import langchain.agents"], timed=True),
    ]
    factories = Table(
        "Import",
        "milliseconds",
        size.contenders,
        [Row("the agent factory, imported", "import import")],
        ratios=[(OURS, each) for each in (BARE, REFERENCE) if each in size.contenders],
    )
    help_beside = Table(
        "Help",
        "milliseconds",
        [HELP, LANGCHAIN],
        [Row("whole process", "help")],
        ratios=[(HELP, LANGCHAIN)],
        targets=[Target("help beside importing langchain.agents", ("help", HELP), ("help", LANGCHAIN), 0.2)],
    )
    return Part(jobs, [factories, help_beside])
