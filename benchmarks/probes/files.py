"""Milliseconds to find files by name and by content below a directory, and how many were found."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module

from benchmarks.probes import times

REPEATS = 9
PATIENCE = 1.0
NEEDLE = "quixotic-marmalade"


def timed(search: Callable[[], int]) -> tuple[float, int]:
    """Search some times, for a second or so; return the median of the milliseconds and the last count."""
    spent: list[float] = []
    found = 0
    while len(spent) < times(REPEATS) and sum(spent) < PATIENCE * 1000:
        start = time.perf_counter()
        found = search()
        spent.append((time.perf_counter() - start) * 1000)
    return statistics.median(spent), found


if __name__ == "__main__":
    searcher = import_module(f"benchmarks.probes.{sys.argv[1]}").Searcher(sys.argv[2])
    glob, globbed = timed(searcher.glob)
    grep, grepped = timed(lambda: searcher.grep(NEEDLE))
    print(json.dumps({"glob": glob, "globbed": globbed, "grep": grep, "grepped": grepped}))
