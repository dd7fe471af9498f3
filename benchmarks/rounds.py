"""Interleaved rounds of fresh child processes: A B C, A B C, ..., so that other work hits all alike."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.contenders import ROOT, child_environment

PATIENCE = 600


@dataclass(frozen=True)
class Job:
    """A measurement of one contender: a command that prints a JSON object, or one that is timed whole."""

    measure: str
    contender: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    timed: bool = False


@dataclass
class Samples:
    """What every round measured, by measure and contender, and what could not be measured."""

    values: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    failures: dict[str, str] = field(default_factory=dict)

    def median(self, measure: str, contender: str) -> float | None:
        """Return the median over the rounds; `None` where nothing was measured."""
        values = self.values.get(measure, {}).get(contender)
        return statistics.median(values) if values else None

    def ratio(self, over: tuple[str, str], under: tuple[str, str]) -> float | None:
        """Return the median of the ratios of each round, so that only neighbours in time are compared."""
        pairs = list(zip(self._of(*over), self._of(*under), strict=False))
        return statistics.median(a / b for a, b in pairs) if pairs else None

    def difference(self, over: tuple[str, str], under: tuple[str, str]) -> float | None:
        """Return the median of the differences of each round."""
        pairs = list(zip(self._of(*over), self._of(*under), strict=False))
        return statistics.median(a - b for a, b in pairs) if pairs else None

    def _of(self, measure: str, contender: str) -> list[float]:
        return self.values.get(measure, {}).get(contender, [])


Run = Callable[[Job], str]
"""Run the command of a job and return what it printed."""


def in_a_process(job: Job) -> str:
    """Run a job as it is measured: in a process of its own."""
    done = subprocess.run(
        job.command, cwd=ROOT, env={**child_environment(), **job.environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    return done.stdout


def measure(jobs: Iterable[Job], rounds: int, samples: Samples, run: Run) -> None:
    """Run all jobs in order, and that so many times; a job that failed is not tried again."""
    jobs = list(jobs)
    for number in range(rounds):
        print(f"Round {number + 1} of {rounds}: {len(jobs)} measurements", file=sys.stderr, flush=True)
        for job in jobs:
            name = f"{job.measure} of {job.contender}"
            if name in samples.failures:
                continue
            try:
                _take(job, samples, run)
            except (subprocess.SubprocessError, OSError, ValueError, LookupError) as error:
                samples.failures[name] = _reason(error)


def _take(job: Job, samples: Samples, run: Run) -> None:
    start = time.perf_counter()
    printed = run(job)
    spent = (time.perf_counter() - start) * 1000
    found = {"": spent} if job.timed else json.loads(printed.splitlines()[-1])
    for key, value in found.items():
        samples.values[f"{job.measure} {key}".strip()][job.contender].append(value)


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = str(error.stderr or error.stdout).strip().splitlines()
        return said[-1] if said else f"ended with {error.returncode}"
    return str(error)
