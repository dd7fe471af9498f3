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
        # `json` escapes all control characters but this one, and a terminal may show the output too.
        line = json.dumps(event.as_dict(), default=str).replace("\x7f", "\\u007f")
        self._out.write(f"{line}\n")
        self._out.flush()

    def pause(self) -> None:
        """Do nothing: each line is whole already."""

    def close(self) -> None:
        """Do nothing: there is nothing to add at the end."""
