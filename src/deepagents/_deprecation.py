"""One way to say that something is deprecated: once a call, at the line of the caller who used it."""

from __future__ import annotations

import inspect
import warnings
from types import FrameType

_OURS = ("deepagents.", "pydantic.")


def warn_legacy(message: str, *, removal: str = "1.0") -> None:
    """Warn at the first line outside this package that led here."""
    depth = 0
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_OURS):
        frame = frame.f_back
        depth += 1
    warnings.warn(f"{message} The old form goes away in {removal}.", DeprecationWarning, stacklevel=depth + 1)
