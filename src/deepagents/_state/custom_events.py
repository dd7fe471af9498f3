"""What the library itself tells those who follow a run, told from what tools write."""

from __future__ import annotations

from typing import Any


class LibraryEvent(dict[str, Any]):
    """An event in its plain form, of the library's own; a dict that somebody else writes is none."""
