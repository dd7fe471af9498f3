"""Five tools as anybody would write them: those of the bare arm. What goes wrong is told in one line."""

from __future__ import annotations

import subprocess
from pathlib import Path

SHELL_SECONDS = 120
SHELL_CHARACTERS = 20_000


def list_files(path: str = ".") -> str:
    """List the files in a directory."""
    try:
        return "\n".join(
            sorted(f"{each.name}/" if each.is_dir() else each.name for each in Path(path).iterdir())
        )
    except OSError as error:
        return f"Error: {error}"


def read_file(path: str) -> str:
    """Read a text file."""
    try:
        return Path(path).read_text()
    except (OSError, ValueError) as error:
        return f"Error: {error}"


def write_file(path: str, content: str) -> str:
    """Write a text file."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content)
    except OSError as error:
        return f"Error: {error}"
    return f"Wrote {path}"


def edit_file(path: str, old: str, new: str) -> str:
    """Replace a text that occurs once in a file."""
    try:
        text = Path(path).read_text()
        if (count := text.count(old)) != 1:
            return f"Error: the old text occurs {count} times in {path}"
        Path(path).write_text(text.replace(old, new))
    except (OSError, ValueError) as error:
        return f"Error: {error}"
    return f"Edited {path}"


def run_command(command: str) -> str:
    """Run a shell command."""
    try:
        done = subprocess.run(command, shell=True, capture_output=True, timeout=SHELL_SECONDS)
    except subprocess.TimeoutExpired as error:
        return f"Error: {error}"
    text = (done.stdout + done.stderr).decode(errors="replace")[-SHELL_CHARACTERS:]
    return f"{text}\n[exit code {done.returncode}]"


PLAIN_TOOLS = (list_files, read_file, write_file, edit_file, run_command)
