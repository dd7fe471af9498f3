"""Milliseconds to read ten lines from the middle of a file, the first time and the next."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.probes import times
from deepagents.backends import FilesystemBackend

NAME = "big.log"
LIMIT = 10
FIRSTS, NEXTS = 3, 9


def by_seek(root: str) -> Callable[[int], str]:
    """Read where the lines are known to start."""
    path = Path(root) / NAME
    with path.open("rb") as file:
        length = len(file.readline())

    def read(line: int) -> str:
        with path.open("rb") as file:
            file.seek(line * length)
            return b"".join(file.readline() for _ in range(LIMIT)).decode()

    return read


def by_backend(root: str) -> Callable[[int], str]:
    """Read by line number, with a backend that knows nothing yet."""
    backend: Any = FilesystemBackend(root_dir=root, virtual_mode=True)
    return lambda line: backend.read(f"/{NAME}", line, LIMIT).file_data["content"]


def timed(read: Callable[[int], str], line: int) -> float:
    """Read ten lines, check them, and return the milliseconds."""
    start = time.perf_counter()
    text = read(line)
    spent = (time.perf_counter() - start) * 1000
    numbers = [int(each.split()[0]) for each in text.splitlines()]
    assert numbers == list(range(line, line + LIMIT)), text
    return spent


if __name__ == "__main__":
    reader = by_seek if sys.argv[1] == "seek" else by_backend
    middle = int(sys.argv[3])
    firsts = [timed(reader(sys.argv[2]), middle) for _ in range(times(FIRSTS))]
    again = reader(sys.argv[2])
    timed(again, middle)
    nexts: list[float] = []
    while len(nexts) < times(NEXTS) and sum(nexts) < 2000:
        nexts.append(timed(again, middle + LIMIT * (len(nexts) + 1)))
    print(json.dumps({"first": statistics.median(firsts), "next": statistics.median(nexts)}))
