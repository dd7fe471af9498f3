"""No link that appears in time shows a file of this person to the terminal's own reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents_cli.project.project import read_text
from tests.attacks.flipping import FLIP_FILE, meanwhile

pytestmark = pytest.mark.slow

TRIES = 20_000


def test_no_link_is_faster_than_the_check(directory: Path, tmp_path: Path) -> None:
    (directory / "d").mkdir()
    path = directory / "d/secret.txt"
    path.write_text("inside")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("canary")
    found: set[str] = set()

    with meanwhile(FLIP_FILE, directory, outside):
        for _ in range(TRIES):
            try:
                found.add(read_text(path, directory, 100))
            except OSError:
                found.add("refused")

    assert found - {""} == {"inside", "refused"}
