"""A harness that is killed at random moments of a command; its number and its moments are seeded."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from deepagents.backends import LocalSandbox
from tests.sandbox.users import find_groups, find_processes, main

KILLS = 30
_SEED = 11
_SECONDS_TO_VANISH = 30


def a_harness_killed_at_random_moments() -> dict[str, Any]:
    """Return for each kill what was left: nothing, if all is well."""
    chance = random.Random(_SEED)
    left: dict[str, Any] = {}
    LocalSandbox("/var/tmp").execute("true")
    for kill in range(KILLS):
        # From the first moment of a start, over its middle, to where the command runs.
        moment = chance.uniform(0, 0.12)
        top = Path(tempfile.mkdtemp(prefix="killed-", dir="/var/tmp")).resolve()
        (top / "a.txt").write_text("mine\n")
        (top / ".git/refs").mkdir(parents=True)
        if kill % 2:
            (top / ".git/hooks").mkdir()
            (top / ".git/config").touch()
        before = _list(top)
        in_session = kill % 4 > 1
        if what := _kill_one(top, moment, f"71.{os.getpid()}{kill}", before, in_session):
            left[f"{kill} at {moment:.3f} s"] = what
        shutil.rmtree(top, ignore_errors=True)
    return left


def what_a_harness_leaves_that_was_killed_between_two_commands() -> list[str]:
    """Return what is in a directory after a session made a repository, and its user one after that."""
    top = Path(tempfile.mkdtemp(prefix="killed-", dir="/var/tmp")).resolve()
    reading, writing = os.pipe()
    harness = os.fork()
    if not harness:
        session = LocalSandbox(top, session=True)
        session.execute("git init -q . && echo x > .git/hooks/pre-commit && rm -rf .git/objects .git/refs")
        os.write(writing, b".")
        time.sleep(60)
        os._exit(1)
    os.read(reading, 1)
    (top / ".git/hooks").mkdir()
    (top / ".git/hooks/pre-push").write_text("mine")
    os.kill(harness, signal.SIGKILL)
    os.waitpid(harness, 0)
    deadline = time.monotonic() + _SECONDS_TO_VANISH
    while find_processes(str(top)) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = [each.removeprefix(f"{top}/") for each in _list(top)]
    shutil.rmtree(top, ignore_errors=True)
    return left


def _kill_one(top: Path, moment: float, mark: str, before: list[str], in_session: bool) -> Any:
    harness = os.fork()
    if not harness:
        backend = LocalSandbox(top, session=in_session)
        command = f"echo evil > .git/commondir; (setsid sleep {mark} &); sleep {mark}"
        backend.execute(command, timeout=20)
        os._exit(0)
    time.sleep(moment)
    os.kill(harness, signal.SIGKILL)
    os.waitpid(harness, 0)
    deadline = time.monotonic() + _SECONDS_TO_VANISH
    while True:
        left = (
            find_processes(mark) + find_processes(str(top)),
            find_groups(harness),
            sorted(set(_list(top)) ^ set(before)),
        )
        if not any(left):
            return None
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def _list(top: Path) -> list[str]:
    # What vanishes meanwhile is not an error here.
    return sorted(f"{above}/{name}" for above, *names in os.walk(top) for name in names[0] + names[1])


if __name__ == "__main__":
    main([a_harness_killed_at_random_moments, what_a_harness_leaves_that_was_killed_between_two_commands])
