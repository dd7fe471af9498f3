"""What several tests of backends need."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    """What a hanging backend waits for; it comes at the end, so that no thread outlives a test."""
    event = threading.Event()
    yield event
    event.set()
    for thread in threading.enumerate():
        if thread.name == "deepagents-io":
            thread.join(10)
