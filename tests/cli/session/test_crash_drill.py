"""An agent that writes files is killed again and again: no file is ever torn, and every thread goes on."""

from __future__ import annotations

import os
import random
import select
import signal
import time
from pathlib import Path

import pytest

from tests.cli.children import PATIENCE
from tests.cli.conftest import Nursery
from tests.cli.scenarios import DRILL_FILES, drill_content, goes_on, is_whole, writes_without_end

ROUNDS = 15
"""At most; fewer when enough kills hit the middle of a write."""
HITS = int(os.environ.get("HITS", "2"))
LONGEST = 0.015


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kills_in_the_middle_of_writes_tear_no_file_and_lose_no_thread(
    nursery: Nursery, directory: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    for name in DRILL_FILES:
        (directory / name).write_text(drill_content("at first"))

    in_the_middle = 0
    for number in range(ROUNDS):
        if in_the_middle == HITS:
            break
        note = f"seed {seed}, round {number}"
        before = contents(directory)
        child = nursery.piped(writes_without_end, f"round {number}", "--yes")
        wait_for_a_write(directory)
        let_it_work(chance.uniform(0, LONGEST))
        child.signal(signal.SIGKILL)
        child.end()

        after = contents(directory)
        assert torn(after) == [], note
        in_the_middle += is_partly_done(directory, before, after)
        again = nursery.piped(goes_on, "--continue", "--yes")
        assert again.end() == 0, f"{note}\n{again.output}"
        assert "Went on after: " in again.output, note
        assert torn(contents(directory)) == [], note
    assert in_the_middle == HITS, f"seed {seed}: only {in_the_middle} kills hit the middle of a write"


def test_a_torn_file_would_be_seen() -> None:
    old, new = drill_content("1"), drill_content("2")

    assert is_whole(new)
    assert not is_whole(new[:-1])
    assert not is_whole(new[: len(new) // 2] + old[len(new) // 2 :])
    assert not is_whole("")


def contents(directory: Path) -> dict[str, str]:
    return {name: (directory / name).read_text() for name in DRILL_FILES}


def torn(texts: dict[str, str]) -> list[str]:
    return [name for name, text in texts.items() if not is_whole(text)]


def is_partly_done(directory: Path, before: dict[str, str], after: dict[str, str]) -> bool:
    """Tell whether a kill left a half-written file beside the others, or some files new and some old."""
    changed = sum(before[name] != after[name] for name in DRILL_FILES)
    files = {path.name for path in directory.iterdir() if path.is_file()}  # an archive may stand there too
    left_over = files - {*DRILL_FILES, "notes.md"}
    for name in left_over:
        (directory / name).unlink()
    return bool(left_over) or 0 < changed < len(DRILL_FILES)


def wait_for_a_write(directory: Path) -> None:
    """Return as soon as a file is made, replaced or written to in the directory."""
    watched = [directory, *(directory / name for name in DRILL_FILES)]
    before = [path.stat().st_mtime_ns for path in watched]
    deadline = time.monotonic() + PATIENCE
    while [path.stat().st_mtime_ns for path in watched] == before:
        assert time.monotonic() < deadline, "nothing is written"
        let_it_work(LONGEST / 50)


def let_it_work(seconds: float) -> None:
    select.select([], [], [], seconds)
