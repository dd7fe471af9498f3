"""What the processes report that run the tests: all of it, even when one dies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import os, pathlib, signal
import pytest

def test_passes(tmp_path):
    assert not [*tmp_path.iterdir()]

def test_fails():
    print("said before")
    assert 1 == 2

def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)

@pytest.fixture
def left():
    yield
    raise ValueError("left behind")

def test_is_left(left):
    pass

@pytest.fixture(scope="session")
def kept():
    yield
    pathlib.Path("ended").touch()

def test_is_last(kept):
    pass
"""


def run(folder: Path, *arguments: str) -> str:
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(root)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.jobs",
        "--jobs",
        "2",
        "-c",
        os.devnull,
        *arguments,
    ]
    return subprocess.run(
        [*command, "--rootdir", folder],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    ).stdout


def test_what_a_process_leaves_that_dies_another_one_runs(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(TESTS)
    (tmp_path / "test_other.py").write_text("def test_passes(): pass")

    printed = run(tmp_path, "-ra")

    assert "2 failed, 4 passed, 1 error" in printed
    assert "FAILED test_one.py::test_dies - the process died with -9" in printed
    assert "FAILED test_one.py::test_fails - assert 1 == 2" in printed
    assert "said before" in printed
    assert "ERROR test_one.py::test_is_left - ValueError: left behind" in printed
    assert (tmp_path / "ended").exists()


def test_no_test_begins_after_the_last_failure_that_counts(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(TESTS)

    assert "1 failed, 1 passed" in run(tmp_path, "-x", "--deselect", "test_one.py::test_dies")
