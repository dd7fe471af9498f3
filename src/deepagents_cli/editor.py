"""Have the person edit a text in the editor of their choice."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path


def find_editor(in_settings: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the command of the editor, if the person has named one."""
    return environment.get("VISUAL") or environment.get("EDITOR") or in_settings


def edit_text(editor: str, text: str, suffix: str) -> str:
    """Open a text in an editor, and return what it was changed to.

    Raises:
        OSError, ValueError, subprocess.CalledProcessError: when the editor cannot be run, or fails.
    """
    with tempfile.TemporaryDirectory(prefix="deepagents-") as directory:
        path = Path(directory, f"proposed{suffix}")
        path.write_text(text, "utf-8")
        subprocess.run([*shlex.split(editor), str(path)], check=True)
        edited = path.read_text("utf-8")
    # Editors end the last line, which a command or a word to replace has not.
    return edited if text.endswith("\n") or not edited.endswith("\n") else edited[:-1]
