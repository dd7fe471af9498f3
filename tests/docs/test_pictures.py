"""The pictures are drawn from runs, and a stale one of the context is noticed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT


def draw(*arguments: str, program: str = "pictures.py") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs" / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


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


def test_the_picture_of_a_run_shows_a_question_and_the_answer_and_loads_nothing(tmp_path: Path) -> None:
    picture = tmp_path / "run.svg"

    drawn = draw("--picture", str(picture), program="run_picture.py")

    assert drawn.returncode == 0, drawn.stdout + drawn.stderr
    text = picture.read_text().replace("&#160;", " ")
    assert "Plan" in text
    assert "edit app.ini" in text
    assert "Debug mode is off." in text
    assert set(re.findall(r"(?:src|href|url)\W+https?:", text)) == set()
