"""Milliseconds to list, search and delete among many files in a store, beside one full search of it."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from langgraph.store.memory import InMemoryStore

from benchmarks.probes import times
from benchmarks.probes.files import NEEDLE
from deepagents.backends import StoreBackend

REPEATS = 5
PATIENCE = 5000.0
NAMESPACE = ("benchmark", "files")


def filled(count: int) -> InMemoryStore:
    """Make a store with so many files, seven of which hold the needle."""
    store = InMemoryStore()
    moment = "2026-01-01T00:00:00+00:00"
    for number in range(count):
        content = f"A note, number {number}.\n" * 20 + (NEEDLE if number % (count // 7 + 1) == 0 else "")
        value = {"content": content, "encoding": "utf-8", "created_at": moment, "modified_at": moment}
        store.put(NAMESPACE, _path(number), value)
    return store


def _path(number: int) -> str:
    return f"/part-{number % 200:03}/note-{number:05}.txt"


def _delete(backend: Any, path: str) -> None:
    done = backend.delete(path)
    assert done.error is None, done.error


def measure(count: int) -> dict[str, float]:
    """Take turns, so that other work hits all alike; a deleted file is put back."""
    store = filled(count)
    backend: Any = StoreBackend(store=store, namespace=lambda runtime: NAMESPACE)
    kept = backend.read(_path(count // 2)).file_data
    works: dict[str, Callable[[], object]] = {
        "search": lambda: store.search(NAMESPACE, limit=2 * count),
        "ls": lambda: backend.ls("/"),
        "glob": lambda: backend.glob("*.txt"),
        "grep": lambda: backend.grep(NEEDLE),
        "delete": lambda: _delete(backend, _path(count // 2)),
    }
    spent: dict[str, list[float]] = {name: [] for name in works}
    while len(spent["search"]) < times(REPEATS) and sum(map(sum, spent.values())) < PATIENCE:
        for name, work in works.items():
            gc.collect()
            start = time.perf_counter()
            work()
            spent[name].append((time.perf_counter() - start) * 1000)
        store.put(NAMESPACE, _path(count // 2), kept)
    found = {"globbed": len(backend.glob("*.txt").matches), "grepped": len(backend.grep(NEEDLE).matches)}
    return {name: statistics.median(each) for name, each in spent.items()} | found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
