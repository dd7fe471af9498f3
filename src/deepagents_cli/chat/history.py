"""Keep what was typed for later sessions, readable for its owner alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

_LARGEST: Final = 1 << 20


def open_history(state: Path) -> History:
    """Open the history in the state directory; in memory where it cannot be written."""
    file = state / "history"
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        file.chmod(0o600)
        if file.stat().st_size > _LARGEST:
            _shorten(file)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


def _shorten(file: Path) -> None:
    """Keep the newer half, from the beginning of an entry."""
    text = file.read_bytes()[-_LARGEST // 2 :]
    file.write_bytes(text[text.find(b"\n# ") + 1 :])
