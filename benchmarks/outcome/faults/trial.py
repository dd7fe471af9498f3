"""Attempts of one arm, one line of JSON each: `python -m benchmarks.outcome.faults.trial ARM JOB`.

It runs in any environment that has a `deepagents`, and imports only what all of them have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langgraph.errors import GraphRecursionError

from benchmarks.outcome.faults import arms
from benchmarks.outcome.faults.forms import WAYS_OF, Form
from benchmarks.outcome.faults.model import FaultyModel, Plan
from benchmarks.outcome.faults.readers import Reader
from benchmarks.outcome.faults.slips import Slip, can_drift
from benchmarks.outcome.faults.tasks import EDITS, TASKS, Task

STEPS = 80


@dataclass(frozen=True)
class Job:
    """What each reader tries: every task at each rate and seed, and of every edit all drifts or `one`."""

    rates: tuple[float, ...]
    rounds: int
    readers: tuple[Reader, ...]
    drifts: bool
    tasks: int = len(TASKS)
    form: Form = "replace"
    one: str = ""


@dataclass(frozen=True)
class Attempt:
    """What came of one attempt.

    `landed_after` is how many calls an edit took beyond the first, `last_slip` the last fault that was made,
    `dial` the rate or the drift, and `written` how many characters the model wrote.
    """

    part: str
    arm: str
    reader: Reader
    task: str
    dial: float | str
    solved: bool
    spoiled: bool
    turns: int
    landed_after: int | None
    last_slip: str
    ended: str
    written: int = 0


def attempts(arm: str, job: Job) -> Iterator[Attempt]:
    """Make all attempts of an arm."""
    for reader in job.readers:
        for rate in job.rates:
            for task in TASKS[: job.tasks]:
                # Without faults there is no chance, so one attempt tells all.
                for seed in range(job.rounds if rate else 1):
                    yield _attempt("tasks", arm, task, Plan(rate, seed, reader), rate, job.form)
        for task in EDITS if job.drifts else ():
            for way in WAYS_OF[job.form]:
                if job.one in ("", way) and can_drift(way, task.steps[-1], task.files):
                    plan = Plan(0, 0, reader, forced=Slip("drift", way), retries=2)
                    yield _attempt("drifts", arm, task, plan, way, job.form)


def _attempt(part: str, arm: str, task: Task, plan: Plan, dial: float | str, form: Form) -> Attempt:
    with TemporaryDirectory(prefix="faults-") as name:
        root = Path(name).resolve()
        task.lay(root)
        model = FaultyModel(task=task, plan=plan, host=str(root), form=form)
        checked = arm == "checked"
        agent = arms.bare(model, root) if arm == "bare" else arms.deep(model, root, checked=checked)
        answer, ended = _run(agent, task)
        solved = task.is_solved(root, answer)
        spoiled = not solved and _is_spoiled(task, root)
        label = arm if form == "replace" else f"{arm}, {form}"
        return Attempt(
            part, label, plan.reader, task.name, dial, solved, spoiled, model.turns,
            model.landed_after, model.last_slip, ended, model.written,
        )  # fmt: skip


def _run(agent: Any, task: Task) -> tuple[str, str]:
    """Return the answer, and what kept the run from its end."""
    try:
        result = agent.invoke({"messages": [("user", task.ask)]}, {"recursion_limit": STEPS})
    except GraphRecursionError:
        return "", "it went in circles"
    return result["messages"][-1].text, ""


def _is_spoiled(task: Task, root: Path) -> bool:
    """Return whether a file is neither as it was nor as it should be."""
    for path, before in task.files.items():
        place = root / path.lstrip("/")
        now = place.read_bytes().decode(errors="replace") if place.is_file() else None
        if now not in (before, task.gold.get(path, before)):
            return True
    return False


def main(arguments: list[str]) -> None:
    """Print every attempt of one arm."""
    arm, given = arguments
    values = json.loads(given)
    for attempt in attempts(arm, Job(**values)):
        print(json.dumps(asdict(attempt)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
