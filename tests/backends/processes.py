"""Programs that run beside a test in processes of their own, and what the test says to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_AGAIN = """
import os, sys
{imports}
print("ready", flush=True)
while sys.stdin.readline():
    if pid := os.fork():
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("gone", flush=True)
        continue
    {work}
"""


def again_after_each_kill(imports: str, work: str) -> str:
    """Make a program that does work in a child, says who that is, and begins again when asked."""
    return _AGAIN.format(imports=imports.strip(), work="\n    ".join(work.strip().splitlines()))


def start(script: str, root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def listen(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def ask(process: subprocess.Popen[str]) -> str:
    tell(process)
    return listen(process)


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert listen(process) == "ready"


def finish(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output
