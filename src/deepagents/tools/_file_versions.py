"""Which version of each file this agent has seen, so that a stale write can be refused."""

from __future__ import annotations

from typing import cast

from deepagents._paths import is_within
from deepagents._state.runtime import in_graph, read_channel, write_channel

CHANNEL = "file_versions"


class FileVersions:
    """The versions of files as this agent last read or wrote them, kept in its own state."""

    def recall(self, path: str) -> str | None:
        """Return the version last seen, if any."""
        return self._known().get(path)

    def remember(self, path: str, version: str | None) -> None:
        """Note the version just seen; a backend that knows none leaves nothing."""
        if version is not None and self.recall(path) != version:
            self._note({path: version})

    def forget_below(self, path: str) -> None:
        """Drop what was known of a path and of everything below it."""
        gone = {known: None for known in self._known() if is_within(known, path)}
        if gone:
            self._note(gone)

    def _known(self) -> dict[str, str]:
        if not in_graph():
            return {}
        return cast("dict[str, str]", read_channel(CHANNEL) or {})

    def _note(self, changes: dict[str, str] | dict[str, None]) -> None:
        if in_graph():
            write_channel(CHANNEL, changes)
