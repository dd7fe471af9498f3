"""Processes that swap names for links all the time, to be faster than a check and its use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

FLIP_DIRECTORY = """
import os, sys
root, outside = sys.argv[1:]
os.chdir(root)
print("ready", flush=True)
number = 0
while True:
    try:
        os.rename("d", "aside")
        os.symlink(outside, "d")
        for _ in range(20):
            os.stat("d/deep")
        os.unlink("d")
    except OSError:
        pass
    while os.path.exists("aside"):
        try:
            os.rename("aside", "d")
        except OSError:
            number += 1
            os.rename("d", f"made-by-a-writer-{number}")
    for _ in range(20):
        os.stat("d")
"""
FLIP_FILE = """
import os, sys
root, outside = sys.argv[1:]
os.chdir(root + "/d")
print("ready", flush=True)
while True:
    os.symlink(outside + "/secret.txt", "other")
    os.replace("other", "secret.txt")
    with open("other", "w") as file:
        file.write("inside")
    os.replace("other", "secret.txt")
"""


FLIP_LINK = """
import os, sys
here, there = sys.argv[1:]
os.chdir(os.path.dirname(here))
name = os.path.basename(here)
print("ready", flush=True)
while True:
    for target in (there, "open"):
        os.symlink(target, "other-link")
        os.replace("other-link", name)
"""
"""Turns the link `here` between `there` and a directory `open` beside it."""


@contextmanager
def meanwhile(script: str, *args: Path) -> Generator[None]:
    """Run a script that swaps names all the time."""
    command = [sys.executable, "-I", "-S", "-c", script, *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
            assert process.poll() is None
        finally:
            process.kill()
