"""The tasks: the public set's, made and checked in processes of their own, and the two local sets."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from benchmarks.local_eval.set_a import SET_A
from benchmarks.local_eval.set_b import SET_B
from benchmarks.local_eval.tasks import Task as LocalJob
from benchmarks.outcome.box import WORK, boxed, places_of
from benchmarks.outcome.environments import SET_HOME, SHELL_PYTHON, install_tasks, task_program

LAY_SECONDS = 120
LOCAL_WAVES = ("local A", "local B")


@dataclass(frozen=True)
class Laid:
    """A task whose files are there: what is asked, and whether the set knows a perfect outcome."""

    prompt: str
    has_gold: bool


class Task(Protocol):
    """A job on files whose outcome is checked by a program."""

    @property
    def id(self) -> str:
        """Its name."""
        ...

    @property
    def wave(self) -> str:
        """The group of tasks that it is in."""
        ...

    def lay(self, work: Path, gold: Path, seed: int) -> Laid:
        """Write the files to start from into `work`, and those of a perfect outcome into `gold`."""
        ...

    def fault(self, work: Path, answer: str, seconds: float) -> str:
        """Say what is wrong with an outcome, or nothing. The check may take `seconds`."""
        ...


@dataclass(frozen=True)
class PublicTask:
    """One of the public set."""

    id: str
    wave: str

    def lay(self, work: Path, gold: Path, seed: int) -> Laid:
        """Write the files to start from into `work`, and those of a perfect outcome into `gold`."""
        found = _ask("lay", self.id, str(work), str(gold), seconds=LAY_SECONDS)
        return Laid(found["prompt"], found["has_gold"])

    def fault(self, work: Path, answer: str, seconds: float) -> str:
        """Say what is wrong with an outcome; the check may run what the agent wrote, so it is boxed in."""
        program = task_program()
        command = boxed(
            [str(SHELL_PYTHON), str(program), "verify", self.id, WORK],
            work,
            shown=[*places_of(SHELL_PYTHON), SET_HOME, program],
            environment={"PYTHONPATH": str(SET_HOME), "PATH": f"{SHELL_PYTHON.parent}:/usr/bin:/bin"},
        )
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"the check took more than {seconds} s"
        if done.returncode:
            return f"the check ended with {done.returncode}: {done.stderr[-300:]}"
        # Where the box puts the files says nothing to a reader.
        return json.loads(done.stdout.splitlines()[-1])["why"].replace(f"{WORK}/", "")


@dataclass(frozen=True)
class LocalTask:
    """One of the local sets."""

    id: str
    wave: str
    job: LocalJob

    def lay(self, work: Path, gold: Path, seed: int) -> Laid:
        """Write the files to start from into `work`, and those of a perfect outcome into `gold`."""
        self.job.lay(work)
        self.job.lay(gold)
        for name, text in self.job.expect.items():
            (gold / name).write_text(text)
        return Laid(self.job.ask(seed), has_gold=True)

    def fault(self, work: Path, answer: str, seconds: float) -> str:
        """Say what is wrong with an outcome, or nothing."""
        return self.job.fault(work, answer)


def local_tasks() -> Sequence[Task]:
    """Return the tasks of both local sets."""
    sets = zip(LOCAL_WAVES, (SET_A, SET_B), strict=True)
    return [LocalTask(f"{wave}: {job.name}", wave, job) for wave, jobs in sets for job in jobs]


def public_tasks() -> Sequence[Task]:
    """Return the tasks of the public set that may be used, and fetch the set first, once."""
    install_tasks()
    return [PublicTask(each["id"], each["wave"]) for each in _ask("list", seconds=LAY_SECONDS)]


def spread(tasks: Iterable[Task], order: int) -> list[Task]:
    """Order tasks so that the first n are spread over the waves by their size, whatever n is."""
    chance = random.Random(order)
    placed: list[tuple[float, Task]] = []
    for _, each in groupby(sorted(tasks, key=lambda task: (task.wave, task.id)), lambda task: task.wave):
        wave = list(each)
        chance.shuffle(wave)
        start = chance.random()
        placed += [((rank + start) / len(wave), task) for rank, task in enumerate(wave)]
    return [task for _, task in sorted(placed, key=lambda each: each[0])]


def _ask(*words: str, seconds: float) -> Any:
    with tempfile.TemporaryDirectory(prefix="outcome-") as elsewhere:
        done = subprocess.run(
            _command(words),
            capture_output=True,
            text=True,
            check=True,
            timeout=seconds,
            cwd=elsewhere,
            env={"PYTHONPATH": str(SET_HOME), "PATH": "/usr/bin:/bin", "HOME": elsewhere, "LANG": "C.UTF-8"},
        )
    return json.loads(done.stdout.splitlines()[-1])


def _command(words: Sequence[str]) -> list[str]:
    return [str(SHELL_PYTHON), str(task_program()), *words]
