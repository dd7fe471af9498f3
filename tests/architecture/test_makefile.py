"""`make` works in the environment of the interpreter that was named, and says what to do when it is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True)


def test_types_are_checked_in_the_environment_of_the_named_interpreter(tmp_path: Path) -> None:
    unversioned = tmp_path / "python"
    unversioned.symlink_to(sys.executable)

    planned = make("--dry-run", "types", f"PYTHON={unversioned}").stdout

    environment = f".venv-python{sys.version_info.major}.{sys.version_info.minor}"
    assert f"{environment}/bin/pyright --pythonpath {environment}/bin/python" in planned


def test_an_interpreter_that_does_not_start_is_refused_with_its_own_words(tmp_path: Path) -> None:
    shim = tmp_path / "python3.13"
    shim.write_text("#!/bin/sh\necho 'python3.13 exists in these versions: 3.13.0' >&2\nexit 127\n")
    shim.chmod(0o755)

    refused = make("quick", f"PYTHON={shim}", f"VENV={tmp_path}/environment")

    assert refused.returncode != 0
    assert "python3.13 exists in these versions: 3.13.0" in refused.stderr
    assert f"none starts as {shim}. Install one, or name its path: make PYTHON=" in refused.stderr
