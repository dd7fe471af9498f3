"""What is measured: each part names its jobs, its table and its targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.contenders import BARE, OURS, REFERENCE
from benchmarks.report import Table
from benchmarks.rounds import Job


@dataclass(frozen=True)
class Size:
    """How much to measure, and beside what."""

    lengths: tuple[int, ...] = (50, 200, 800)
    directories: int = 200
    files: int = 20_000
    workers: tuple[int, ...] = (0, 1, 5, 20)
    session: int = 300
    contenders: tuple[str, ...] = (OURS, BARE, REFERENCE)

    @property
    def deep(self) -> tuple[str, ...]:
        """The contenders that are deep agents."""
        return tuple(each for each in self.contenders if each != BARE)


@dataclass(frozen=True)
class Part:
    """Jobs, and the tables that they fill."""

    jobs: list[Job]
    tables: list[Table]
    exact: bool = False
    """Whether every round finds the same, so that one is enough."""


Plan = Callable[[Size], Part]


def module(python: str, name: str, *arguments: object) -> list[str]:
    """Make the command that runs one probe."""
    return [python, "-m", f"benchmarks.probes.{name}", *map(str, arguments)]
