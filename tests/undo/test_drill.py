"""Random sequences of work and of going back, with kills, end as a plain model in memory says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.undo.drill import Sequence

pytestmark = pytest.mark.slow

SEQUENCES = int(os.environ.get("UNDO_SEQUENCES", "3"))
FIRST = int(os.environ.get("UNDO_FIRST", "0"))
STEPS = 12


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEQUENCES))
def test_a_sequence_ends_as_the_model_says(seed: int, tmp_path: Path) -> None:
    sequence = Sequence(seed, tmp_path, ("plain", "repository", "nested")[seed % 3])
    try:
        sequence.go(STEPS)
    finally:
        sequence.child.close()
