"""A write of a file passes few modules of ours; CONTRIBUTING.md says how many."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.probes.trips import Trip, trace_all


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trip]:
    return trace_all(Path(tmp_path_factory.mktemp("disk")))


@pytest.mark.parametrize(
    ("trip", "modules", "switches"),
    [("write_file to state", 14, 30), ("write_file, composite, one rule", 25, 120)],
)
def test_a_write_takes_a_short_way(trips: dict[str, Trip], trip: str, modules: int, switches: int) -> None:
    assert len(trips[trip].modules) <= modules
    assert trips[trip].switches <= switches


def test_our_own_backends_are_not_adapted(trips: dict[str, Trip]) -> None:
    writes = [trip for name, trip in trips.items() if name.startswith("write_file")]
    passed = {module for trip in writes for module in trip.modules}

    assert [module for module in passed if module.startswith(("backends/foreign", "backends/_sig"))] == []
