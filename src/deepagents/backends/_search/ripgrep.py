"""Ask ripgrep which files hold some bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_OPTIONS = (
    "--no-config", "--no-messages", "--files-with-matches", "--null", "--fixed-strings", "--case-sensitive",
    "--hidden", "--no-ignore", "--no-follow", "--text", "--encoding=none", "--color=never",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files that hold the bytes, by path from the start; `complete` unless time ran out."""

    files: list[str]
    complete: bool


@cache
def find_ripgrep() -> str | None:
    """Find the program on the search path, or beside this Python, where its wheel puts it."""
    beside = Path(sys.executable).parent
    return shutil.which("rg") or shutil.which("rg", path=str(beside))


def candidates(program: str, start: Path, needle: bytes, seconds: float) -> Candidates | None:
    """Run ripgrep below a directory; `None` when it cannot be relied on."""
    if not needle or b"\0" in needle or b"\n" in needle:
        return None
    command = [program, *_OPTIONS, "--", needle, "."]
    try:
        done = subprocess.run(
            command, cwd=start, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return Candidates(_paths(_whole_names(late.output or b"")), complete=False)
    except OSError:
        find_ripgrep.cache_clear()
        return None
    return Candidates(_paths(done.stdout), complete=True) if done.returncode in (0, 1) else None


def _whole_names(output: bytes) -> bytes:
    return output[: output.rfind(b"\0") + 1]


def _paths(output: bytes) -> list[str]:
    names = output.decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()).split("\0")
    return [name.removeprefix("./").replace(os.sep, "/") for name in names if name]
