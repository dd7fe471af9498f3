"""Have the person edit a text in the editor of their choice."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path


def edit_file(editor: Sequence[str], text: str, suffix: str) -> str:
    """Open a text in an editor and return what it was changed to."""
    with tempfile.TemporaryDirectory(prefix="deepagents-") as directory:
        path = Path(directory, f"proposed{suffix}")
        path.write_text(text, "utf-8")
        subprocess.run([*editor, str(path)], check=True)
        return path.read_text("utf-8")
