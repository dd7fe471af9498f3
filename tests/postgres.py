"""A real PostgreSQL of the tests' own: on a socket in a temporary directory, and gone when they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl", "postgres")
_UNPRIVILEGED = "nobody"
_SCRIPT = """
initdb -D "$1/data" -U postgres -A trust -E UTF8 --no-locale --no-sync >"$1/log" 2>&1 &&
pg_ctl start -w -D "$1/data" -l "$1/log" -o "$2" >>"$1/log" 2>&1 &&
echo ready
read _
pg_ctl stop -m immediate -D "$1/data" >>"$1/log" 2>&1
"""
_OPTIONS = "-c listen_addresses= -c fsync=off -c synchronous_commit=off -c full_page_writes=off"


def missing() -> list[str]:
    """Name the programs that are needed and not on the search path."""
    return [program for program in PROGRAMS if not shutil.which(program)]


@contextmanager
def server() -> Generator[str]:
    """Run a server and yield how to connect to it; it ends with this process, even one that is killed."""
    root = Path(tempfile.mkdtemp(prefix="pg-"))
    user = _UNPRIVILEGED if os.geteuid() == 0 else None
    if user:
        shutil.chown(root, user)
    running = subprocess.Popen(
        ["sh", "-c", _SCRIPT, "sh", str(root), f"-k {root} {_OPTIONS}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
        user=user,
        start_new_session=True,
        text=True,
    )
    try:
        assert running.stdout is not None
        said = running.stdout.readline()
        assert said == "ready\n", (root / "log").read_text()
        yield f"host={root} user=postgres dbname=postgres"
    finally:
        running.communicate()
        shutil.rmtree(root, ignore_errors=True)
