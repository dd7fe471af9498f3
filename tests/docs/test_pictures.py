"""The picture of a context is what a run gives today, and a stale one is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT


def draw(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "docs" / "pictures.py"), *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=200)


def test_the_picture_is_what_a_run_gives() -> None:
    checked = draw("--check")

    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("standing", ["", "<svg/>"])
def test_another_picture_is_noticed_and_drawn_anew(tmp_path: Path, standing: str) -> None:
    picture = tmp_path / "context.svg"
    picture.write_text(standing)

    assert draw("--check", "--picture", str(picture)).returncode == 1
    assert draw("--picture", str(picture)).returncode == 0
    assert picture.read_text() == (ROOT / "docs" / "concepts" / "context.svg").read_text()
