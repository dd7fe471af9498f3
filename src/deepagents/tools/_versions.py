"""Remember which version of a file an agent has seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deepagents._paths import is_within
from deepagents._state.runtime import in_graph, read_channel, write_channel

VERSIONS_CHANNEL: Final = "file_versions"


class FileVersions:
    """The versions of files as this agent last read or wrote them, kept in its own state.

    A write or an edit names the version it builds on, so that a backend can refuse to overwrite a change
    that the agent has not seen.
    """

    # Made anew for each call of a tool, whose own notes are all that can change the channel meanwhile.
    _read: Mapping[str, str] | None = None

    def recall(self, path: str) -> str | None:
        """Return the version last seen, if any."""
        return self._read_versions().get(path)

    def remember(self, path: str, version: str | None) -> None:
        """Note the version just seen; a backend that knows none leaves nothing."""
        # Each note is a write to the channel, and so to the checkpoint.
        if version is not None and self.recall(path) != version:
            self._note({path: version})

    def forget_below(self, path: str) -> None:
        """Drop what was known of a path and of everything below it."""
        gone = {known: None for known in self._read_versions() if is_within(known, path)}
        if gone:
            self._note(gone)

    def _read_versions(self) -> Mapping[str, str]:
        if self._read is None:
            known: Mapping[str, str] | None = read_channel(VERSIONS_CHANNEL) if in_graph() else None
            self._read = known or {}
        return self._read

    def _note(self, changes: dict[str, str] | dict[str, None]) -> None:
        self._read = None
        if in_graph():
            write_channel(VERSIONS_CHANNEL, changes)
