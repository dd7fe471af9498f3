"""A write of a file goes straight to a backend of ours."""

from __future__ import annotations

from pathlib import Path

from benchmarks.probes.trips import trace_all


def test_our_own_backends_are_not_adapted(tmp_path: Path) -> None:
    writes = [trip for name, trip in trace_all(tmp_path).items() if name.startswith("write_file")]
    passed = {module for trip in writes for module in trip.modules}

    assert [module for module in passed if module.startswith(("backends/foreign", "backends/_sig"))] == []
