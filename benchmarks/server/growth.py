"""What a request costs, while one owner keeps more and more threads."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg

from benchmarks.server.programs import deepagents
from tests import postgres

SIZES = (1, 1_000, 10_000, 100_000)
_ASKED = {"messages": [{"role": "user", "content": "hello"}]}
_TIMES = 25
_STAMP = "'2026-01-01T00:00:00.' || {digits} || '+00:00'"
_KEPT = (
    """INSERT INTO threads (thread_id, metadata, "values", created_at, updated_at, state_updated_at)
    SELECT {id}, {metadata}, '{{"messages": []}}', {stamp}, {stamp}, {stamp} FROM {numbers}""",
    "INSERT INTO leases (thread_id) SELECT {id} FROM {numbers}",
    """INSERT INTO runs
    (run_id, thread_id, assistant_id, graph_id, status, kwargs, due_at, created_at, updated_at)
    SELECT {id}, {id}, '', 'brief', 'success', '{{}}', {stamp}, {stamp}, {stamp} FROM {numbers}""",
)
"""Threads on each of which one run has ended."""


def growth(directory: Path, kind: str, sizes: Sequence[int] = SIZES) -> Iterator[str]:
    """Measure with more and more threads, and yield the rows of a table."""
    with _database(directory, kind) as (address, keep):
        server = deepagents(directory, "--database", address)
        server.start()
        try:
            server.wait()
            yield f"| {kind}: threads | " + " | ".join(_requests(httpx.Client())) + " |"
            kept = 0
            for size in sizes:
                keep(kept, size)
                kept = size
                with httpx.Client(base_url=server.url, timeout=300) as client:
                    took = [_median(ask) for ask in _requests(client).values()]
                yield f"| {size:,} | " + " | ".join(f"{each:.1f}" for each in took) + " |"
        finally:
            server.end()


def _median(ask: Callable[[], Any]) -> float:
    for _ in range(3):
        ask()
    took: list[float] = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        ask()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def _requests(client: httpx.Client) -> dict[str, Callable[[], Any]]:
    def post(path: str, given: Any) -> Any:
        return client.post(path, json=given).raise_for_status().json()

    def run() -> None:
        thread = post("/threads", {})["thread_id"]
        post(f"/threads/{thread}/runs/wait", {"assistant_id": "brief", "input": _ASKED})

    return {
        "a run waited for": run,
        "search by rare metadata": lambda: post("/threads/search", {"metadata": {"mark": "0"}}),
        "by common metadata": lambda: post("/threads/search", {"metadata": {"graph_id": "brief"}}),
        "by status": lambda: post("/threads/search", {"status": "idle"}),
        "`/metrics`": lambda: client.get("/metrics").raise_for_status(),
    }


@contextmanager
def _database(directory: Path, kind: str) -> Generator[tuple[str, Callable[[int, int], None]]]:
    """Yield the address of a database, and what keeps threads with the numbers from one to another in it."""
    if kind == "sqlite":
        file = directory / "server.db"

        def keep_in_file(first: int, last: int) -> None:
            numbers = (
                f"(WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {last})"
                " SELECT i FROM n)"
            )
            with closing(sqlite3.connect(file, timeout=60)) as opened, opened:
                for statement in _statements(numbers, "printf('%06d', i)"):
                    opened.execute(statement)

        yield f"sqlite:///{file}", keep_in_file
        return
    with postgres.server() as place:
        host = dict(part.split("=") for part in place.split())["host"]

        def keep(first: int, last: int) -> None:
            numbers = f"generate_series({first}, {last - 1}) AS n(i)"
            with psycopg.connect(place, autocommit=True) as opened:
                for statement in _statements(numbers, "lpad(i::text, 6, '0')"):
                    opened.execute(statement.encode())
                # As the database does by itself, some time after so many rows were added.
                opened.execute("ANALYZE")

        yield f"postgresql://postgres@/postgres?host={host}", keep


def _statements(numbers: str, digits: str) -> Iterator[str]:
    casts = "::jsonb" if "::" in digits else ""
    metadata = f"""('{{"graph_id": "brief", "mark": "' || i || '"}}'){casts}"""
    for kept in _KEPT:
        stamp = _STAMP.format(digits=digits)
        yield kept.format(id=f"'kept ' || {digits}", metadata=metadata, stamp=stamp, numbers=numbers)
