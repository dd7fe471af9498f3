"""Run drills in a process of their own, as root or as an ordinary user: a user cannot be changed back."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from deepagents.backends import LocalSandbox

ORDINARY = 12_345
_PR_SET_DUMPABLE = 4
_SECONDS = 300
USERS = {"root": 0, "an ordinary user": ORDINARY} if os.geteuid() == 0 else {"an ordinary user": os.geteuid()}
UNAVAILABLE = LocalSandbox.available()


def become(user: int) -> None:
    """Become a user for good. Import everything before: files of root may be out of reach from here."""
    if user and os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        # A process that changed its user is closed to others of that user, unlike any that they start.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1)


def find_python(user: str) -> str | None:
    """Return a Python of this version that a user can start too, for drills that have one in the sandbox."""
    above = Path(sys.base_prefix).resolve().parents
    if USERS[user] == os.geteuid() or all(each.stat().st_mode & stat.S_IXOTH for each in above):
        return sys.executable
    return shutil.which(f"python{sys.version_info.major}.{sys.version_info.minor}", path="/usr/bin")


@cache
def run_drills(module: str, user: str, python: str = sys.executable) -> dict[str, Any]:
    """Run all drills of a module as one user, and return what each returned; once, for starting takes long."""
    env = {**os.environ, "HARNESS_SECRET": "canary-7d1f0c", "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [python, "-m", module, str(USERS[user])], capture_output=True, text=True, timeout=_SECONDS,
        check=False, cwd=Path(__file__).parents[2], env=env,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    results: dict[str, Any] = json.loads(ran.stdout)
    return results


@cache
def run_drills_as_all(module: str) -> dict[str, dict[str, Any]]:
    """Run all drills of a module as each user, side by side: they wait most of their time."""
    with ThreadPoolExecutor(len(USERS)) as threads:
        return dict(zip(USERS, threads.map(lambda user: run_drills(module, user), USERS), strict=True))


def main(drills: Sequence[Callable[[], Any]]) -> None:
    """Become the user that the argument names, and print what each drill returns as JSON."""
    become(int(sys.argv[1]))
    results: dict[str, Any] = {}
    for drill in drills:
        try:
            results[drill.__name__] = drill()
        except Exception:  # noqa: BLE001 - the test shows it
            results[drill.__name__] = traceback.format_exc()
    json.dump(results, sys.stdout)


def find_processes(text: str) -> list[str]:
    """Return the command lines, on this whole machine, that hold a text."""
    found: list[str] = []
    # Not by a pattern for `cmdline`: to look whether it is there fails where the process ends meanwhile.
    for each in (process / "cmdline" for process in Path("/proc").glob("[0-9]*")):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and int(each.parent.name) != os.getpid():
            found.append(line)
    return found


def find_groups(pid: int) -> list[str]:
    """Return the control groups that a process made and did not remove."""
    return [
        f"{top}/{name}"
        for top, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith(f"deepagents-{pid}-")
    ]
