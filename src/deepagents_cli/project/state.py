"""Find the directory that keeps the sessions of a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from deepagents_cli.text import reason_of

FILE = "threads.sqlite"
_UNKEPT = "deepagents-unkept-"


def state_dir(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return where sessions are kept: `DEEPAGENTS_STATE`, or the user's state directory."""
    if chosen := environment.get("DEEPAGENTS_STATE"):
        return Path(chosen).expanduser()
    if chosen := environment.get("XDG_STATE_HOME"):
        return Path(chosen) / "deepagents"
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "deepagents"
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "deepagents"
    return Path.home() / ".local" / "state" / "deepagents"


def undo_dir() -> Path:
    """Return where the history of files is kept: next to the sessions."""
    return state_dir() / "undo"


@contextmanager
def keep_somewhere(tell: Callable[[str], None]) -> Generator[None]:
    """Keep what belongs into the user's state directory in one that is removed at the end, if need be."""
    state, problem = state_dir(), ""
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        problem = "" if os.access(state, os.W_OK) else "it cannot be written"
    except OSError as error:
        problem = reason_of(error)
    # Who has named a directory wants that one.
    if not problem or os.environ.get("DEEPAGENTS_STATE"):
        yield
        return
    tell(f"sessions cannot be kept in {str(state)!r} ({problem}), so this one is gone at its end")
    with TemporaryDirectory(prefix=_UNKEPT) as place:
        os.environ["DEEPAGENTS_STATE"] = place
        try:
            yield
        finally:
            del os.environ["DEEPAGENTS_STATE"]


def is_kept() -> bool:
    """Tell whether sessions outlast this process."""
    return not state_dir().name.startswith(_UNKEPT)
