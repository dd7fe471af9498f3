"""Milliseconds from the start to the end of `true`: the first, further ones, and four at once."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

from benchmarks.parts.commands import NAMED, PLAIN, SESSION, SHELL
from benchmarks.probes import times
from deepagents.backends import LocalSandbox, LocalShellBackend

COMMAND = "true"
COUNT, AT_ONCE, TIMES = 100, 4, 10


@contextmanager
def runner(way: str, root: str) -> Generator[Callable[[], int | None]]:
    """Make what runs the command once, and returns its exit code."""
    if way == PLAIN:
        yield (
            lambda: subprocess.run(COMMAND, shell=True, cwd=root, capture_output=True, check=False).returncode
        )
    elif way == SHELL:
        shell = LocalShellBackend(root)
        yield lambda: shell.execute(COMMAND).exit_code
    else:
        options: Mapping[str, Any] = {NAMED: {"network": ["example.org"]}, SESSION: {"session": True}}
        with closing(LocalSandbox(root, **options.get(way, {}))) as sandbox:
            yield lambda: sandbox.execute(COMMAND).exit_code


def milliseconds(work: Callable[[], object]) -> float:
    """Time one piece of work."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def measured(way: str, root: str) -> dict[str, float]:
    """Measure one way to run the command."""
    start = time.perf_counter()
    with runner(way, root) as run, ThreadPoolExecutor(AT_ONCE) as threads:
        assert run() == 0, way
        first = (time.perf_counter() - start) * 1000
        further = [milliseconds(run) for _ in range(times(COUNT - 1))]

        def run_four() -> None:
            assert [each.result() for each in [threads.submit(run) for _ in range(AT_ONCE)]] == [0] * AT_ONCE

        run_four()
        four = statistics.median(milliseconds(run_four) for _ in range(times(TIMES)))
    return {"first": first, "next": statistics.median(further), "hundredth": further[-1], "four": four}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="benchmark-commands-") as directory:
        print(json.dumps(measured(sys.argv[1], directory)))
