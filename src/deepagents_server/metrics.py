"""Count what this process does, for Prometheus: in memory, so that to ask costs the database nothing."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    start_http_server,
)

from deepagents_server.errors import ServeError

_FAST: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SLOW: Final = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Bounds in seconds: of what a server does by itself, and of what waits for models and tools."""


class Metrics:
    """What is counted; each server of a process counts for itself."""

    def __init__(self) -> None:
        # Twice as many series, which tell when each of them began.
        disable_created_metrics()
        self._registry = CollectorRegistry()
        # What the process itself uses, and what code of users counts.
        self._registry.register(REGISTRY)
        self.background = ThreadPoolExecutor(1, "metrics")
        route = ("method", "route")
        self.queue_age = self._gauge("queue_age_seconds", "How long the first of all waiting runs was due.")
        self.connections = self._gauge("connections", "Open connections.")
        self.open_requests = self._gauge("open_requests", "Requests without a whole answer yet.")
        self.requests = self._counter("requests", "Requests that were answered.", *route, "status")
        self.request_seconds = self._histogram("request", "Time to the begin of an answer.", _FAST, *route)
        self.run_wait = self._histogram("run_wait", "Time until runs that were due began.", _FAST, "graph")
        self.first_event = self._histogram(
            "first_event", "Time until runs that were due had a first event.", _FAST, "graph"
        )
        self.run_seconds = self._histogram(
            "run", "Time from the begin of runs' last attempts to their ends.", _SLOW, "graph", "status"
        )
        self.run_errors = self._counter("run_errors", "Runs that failed.", "graph", "kind")
        self.run_restarts = self._counter("run_restarts", "Further attempts at runs.", "graph")
        self.model_seconds = self._histogram("model_call", "Time of answers of models.", _SLOW, "model")
        self.model_errors = self._counter("model_errors", "Calls of models that failed.", "model", "kind")
        self.tokens = self._counter("tokens", "Tokens that models read and wrote.", "model", "kind")
        self.cost = self._counter("cost_usd", "What these cost, as far as prices are known.", "model")

    def _gauge(self, name: str, purpose: str) -> Gauge:
        return Gauge(f"deepagents_{name}", purpose, registry=self._registry)

    def _counter(self, name: str, purpose: str, *labels: str) -> Counter:
        return Counter(f"deepagents_{name}", purpose, labels, registry=self._registry)

    def _histogram(self, name: str, purpose: str, bounds: Sequence[float], *labels: str) -> Histogram:
        name = f"deepagents_{name}_seconds"
        return Histogram(name, purpose, labels, registry=self._registry, buckets=bounds)

    def show(self) -> str:
        """Return all that was counted, in the text format of Prometheus."""
        return generate_latest(self._registry).decode()

    @contextmanager
    def shown_at(self, address: tuple[str, int]) -> Generator[None]:
        """Show the same to everybody who asks at an address, until the block ends.

        Raises:
            ServeError: if nothing can listen there.
        """
        host, port = address
        try:
            listening, thread = start_http_server(port, host, self._registry)
        except (OSError, OverflowError) as error:
            raise ServeError(f"Metrics cannot be shown at {host}:{port}: {error}.") from error
        try:
            yield
        finally:
            listening.shutdown()
            listening.server_close()
            thread.join()
