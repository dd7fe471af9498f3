"""Events as JSON, one object a line, for programs."""

from __future__ import annotations

import json
from typing import IO

from deepagents.events import Event


class JsonLines:
    """Writes each event as one line and flushes it."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def __call__(self, event: Event) -> None:
        """Write one event."""
        self._out.write(json.dumps(event.as_dict(), default=str) + "\n")
        self._out.flush()

    def pause(self) -> None:
        """Each line is whole already."""

    def close(self) -> None:
        """There is nothing to add at the end."""
