"""Ask ripgrep which files are worth opening."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# No ignore files, no configuration: the result must be the same as without ripgrep.
_WALK = ("--no-config", "--no-messages", "--null", "--hidden", "--no-ignore", "--no-follow", "--color=never")
_SEARCH = ("--files-with-matches", "--fixed-strings", "--case-sensitive", "--text", "--encoding=none")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Files that may hold what is looked for, by path from the start; `is_complete` unless time ran out."""

    files: list[str]
    is_complete: bool


@cache
def find_ripgrep() -> str | None:
    """Find the program on the search path, or next to this Python, where its wheel puts it."""
    return shutil.which("rg") or shutil.which("rg", path=str(Path(sys.executable).parent))


def find_candidates(
    program: str, start: Path, needle: bytes, largest: int, seconds: float
) -> Candidates | None:
    """Find the files that hold the bytes, and those too large to be searched; `None` when ripgrep fails.

    ripgrep keeps whole lines in memory, so it gets no file of more than `largest` bytes. It does not
    say which files it leaves out: they are what a list of all files has more than one with the bound.
    """
    if not needle or b"\0" in needle or b"\n" in needle:
        return None
    ends = time.monotonic() + seconds
    bound = f"--max-filesize={largest}"
    found = _run([program, *_WALK, bound, *_SEARCH, "--", needle, "."], start, ends)
    small = found and _run([program, *_WALK, bound, "--files", "."], start, ends)
    files = small and _run([program, *_WALK, "--files", "."], start, ends)
    if found is None or small is None or files is None:
        return None
    large = files[0] - small[0] if small[1] else set[bytes]()
    names = (os.fsdecode(name).removeprefix("./").replace(os.sep, "/") for name in found[0] | large)
    return Candidates(list(names), found[1] and small[1] and files[1])


def _run(command: Sequence[str | bytes], start: Path, ends: float) -> tuple[set[bytes], bool] | None:
    """Return the names that ripgrep prints, and whether it got to its end in time."""
    try:
        done = subprocess.run(
            command, cwd=start, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=max(ends - time.monotonic(), 0.01), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        # The last name may have been cut when the program was stopped.
        whole_names = (late.output or b"").rpartition(b"\0")[0]
        return set(filter(None, whole_names.split(b"\0"))), False
    except OSError:
        # The program may have been removed since it was found.
        find_ripgrep.cache_clear()
        return None
    # 1 means no match; anything above is a failure, and then every file is walked here.
    return (set(filter(None, done.stdout.split(b"\0"))), True) if done.returncode in (0, 1) else None
