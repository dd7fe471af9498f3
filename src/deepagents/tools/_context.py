"""Hold what a file tool works with during one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from deepagents._paths import is_within
from deepagents._state.runtime import in_graph, read_channel, write_channel
from deepagents.backends.handle import FileCalls
from deepagents.tools._tool import CHARACTERS_PER_TOKEN

VERSIONS_CHANNEL: Final = "file_versions"
_RESULT_TOKENS: Final = 20_000


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits of one tool call: what it may return or take. Tokens are counted as four characters each."""

    result_tokens: int | None = _RESULT_TOKENS
    grep_matches: int | None = 1000
    execute_seconds: int = 3600

    @property
    def result_characters(self) -> int | None:
        """The most characters of a result; `None` for any number."""
        return self.result_tokens * CHARACTERS_PER_TOKEN if self.result_tokens else None

    @property
    def listing_characters(self) -> int:
        """The most characters of a list, which has a bound even where other results have none."""
        return self.result_characters or _RESULT_TOKENS * CHARACTERS_PER_TOKEN


class FileVersions:
    """The versions of files as this agent last read or wrote them, kept in its own state.

    A write or an edit names the version it builds on, so that a backend can refuse to overwrite a change
    that the agent has not seen.
    """

    def __init__(self) -> None:
        self._read: dict[str, str] | None = None

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

    def _read_versions(self) -> dict[str, str]:
        # Made anew for each call of a tool, whose own notes are all that can change the channel meanwhile.
        if self._read is None:
            self._read = cast("dict[str, str]", read_channel(VERSIONS_CHANNEL) or {}) if in_graph() else {}
        return self._read

    def _note(self, changes: dict[str, str] | dict[str, None]) -> None:
        self._read = None
        if in_graph():
            write_channel(VERSIONS_CHANNEL, changes)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The files, what is known of them, and the limits that hold for one call."""

    files: FileCalls
    versions: FileVersions
    limits: ToolLimits
    read_format: str = "numbered"
    call_id: str = ""
