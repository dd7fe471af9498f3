"""Run a program in a throw-away directory, without a network and without the rest of the machine's files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

WORK = "/tmp/work"
"""Where a program finds its directory."""

_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc")


def boxed(
    command: Sequence[str],
    work: Path,
    *,
    shown: Iterable[Path],
    bound: Mapping[Path, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Build the command that runs `command` in `work`: it reads `shown` and uses what is `bound` to a path.

    Raises:
        RuntimeError: where bubblewrap is not installed.
    """
    variables = {"HOME": "/tmp", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **(environment or {})}
    words = [
        _bubblewrap(),
        "--die-with-parent",
        "--new-session",
        "--unshare-net",
        "--unshare-pid",
        "--unshare-ipc",
    ]
    words += ["--clearenv", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for path in _SYSTEM:
        words += ["--ro-bind-try", path, path]
    for path in dict.fromkeys(map(str, shown)):
        words += ["--ro-bind-try", path, path]
    for path, seen in {work: WORK, **(bound or {})}.items():
        words += ["--bind", str(path), seen]
    for name, value in variables.items():
        words += ["--setenv", name, value]
    return [*words, "--chdir", WORK, *command]


def places_of(python: Path) -> list[Path]:
    """Name the directories that an interpreter lives on: its environment, and the installation behind it."""
    return [python.parents[1], python.resolve().parents[1]]


def can_box() -> bool:
    """Say whether bubblewrap is there and may make namespaces."""
    try:
        command = boxed(["true"], Path(tempfile.gettempdir()), shown=())
    except RuntimeError:
        return False
    return subprocess.run(command, capture_output=True).returncode == 0


def _bubblewrap() -> str:
    own = str(Path(sys.executable).parent)
    found = shutil.which("bwrap", path=os.pathsep.join([own, os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise RuntimeError("bwrap was not found. Attempts run in bubblewrap: install the package bubblewrap.")
    return found
