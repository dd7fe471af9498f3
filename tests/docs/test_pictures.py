"""The pictures are drawn from runs, and a stale one of the context is noticed."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import programs
from tests.architecture.source import ROOT
from tests.cli.tmux import needs_tmux

pytestmark = pytest.mark.slow

server: Any = runpy.run_path(str(ROOT / "docs" / "server_picture.py"))
draw: Any = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["main"]


def test_the_picture_is_what_a_run_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert draw(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("standing", ["", "<svg/>"])
def test_another_picture_is_noticed_and_drawn_anew(tmp_path: Path, standing: str) -> None:
    picture = tmp_path / "context.svg"
    picture.write_text(standing)

    assert draw(["--check", "--picture", str(picture)]) == 1
    assert draw(["--picture", str(picture)]) == 0
    assert picture.read_text() == (ROOT / "docs" / "concepts" / "context.svg").read_text()


@needs_tmux
def test_the_picture_of_a_run_shows_a_question_and_the_answer_and_loads_nothing(tmp_path: Path) -> None:
    picture = tmp_path / "run.svg"

    program = f"import runpy; runpy.run_path({str(ROOT / 'docs/run_picture.py')!r}, run_name='__main__')"
    drawn = programs.run(program, "--picture", str(picture))

    assert drawn.returncode == 0, drawn.stdout + drawn.stderr
    text = picture.read_text().replace("&#160;", " ")
    assert "Find where debug mode is set" in text
    assert "edit app.ini" in text
    assert "Debug mode is off." in text
    assert set(re.findall(r"(?:src|href|url)\W+https?:", text)) == set()


@pytest.mark.skipif(not any(map(shutil.which, server["BROWSERS"])), reason="Chromium is not installed")
def test_the_picture_of_a_server_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "server.png"

    assert server["main"](["--picture", str(picture)]) == 0

    assert picture.read_bytes().startswith(b"\x89PNG")
