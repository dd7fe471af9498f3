"""What a child process measures. A probe prints one JSON object, and runs in every environment."""

from __future__ import annotations

import os


def times(usual: int) -> int:
    """Say how often to measure: as usual, or once where BENCHMARK_ONCE asks whether it runs at all."""
    return 1 if os.environ.get("BENCHMARK_ONCE") else usual
