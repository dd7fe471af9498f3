"""Rates, and differences of arms with intervals. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """An estimate, and where 95 of 100 resamples lie."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside."""
        return self.low > 0 or self.high < 0


def mean(values: Sequence[float]) -> float:
    """Return the mean; of nothing, 0."""
    return sum(values) / len(values) if values else 0.0


def paired_difference(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Interval | None:
    """Compare the rates of two arms task by task: a bootstrap over the tasks that both have tried.

    Returns None where there is no such task.
    """
    tasks = sorted(ours.keys() & theirs.keys())
    return bootstrap([ours[task] - theirs[task] for task in tasks]) if tasks else None


def bootstrap(values: Sequence[float], resamples: int = RESAMPLES) -> Interval:
    """Return the mean of the values and its percentile interval; the same for the same values."""
    chance = random.Random(0)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(resamples))
    return Interval(mean(values), means[int(0.025 * resamples)], means[int(0.975 * resamples) - 1])
