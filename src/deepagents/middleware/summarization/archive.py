"""What is evicted from the context, whole and readable, in one file for each conversation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from langchain_core.messages import AnyMessage, BaseMessage

from deepagents._flow import Flow, in_thread
from deepagents.backends.calls import Files, SearchOptions
from deepagents.errors import ToolFailure
from deepagents.middleware.summarization.media import Media, Message
from deepagents.middleware.summarization.summary import is_summary
from deepagents.middleware.summarization.transcript import FetchMedia, parse_messages, written
from deepagents.tools._tool import artifact_name

__all__ = ["Archive", "Archived", "archive_path", "parse"]

FOLDER: Final = "conversation_history"
_MARK_LENGTH: Final = 16
_DIGEST_LENGTH: Final = 16
_PLAIN = re.compile(r"(?!\.+\Z)(?!.*(?:\.[0-9a-f]{8}|-[0-9a-f]{16})\Z)[A-Za-z0-9._-]{1,100}")
_BEGINNING = re.compile(r"^<!-- section ([0-9a-f]{16}), (\d+) characters -->\n\n", re.MULTILINE)


def archive_path(root: str, thread_id: str | None, session_id: str, namespace: str) -> str:
    """Name the file of a conversation: one for a thread, one more for each subagent's namespace in it.

    The namespace is the checkpoint namespace of the node that asks; its last part is the node's own.
    """
    owner, _, _ = namespace.rpartition("|")
    part = f".{_digest(owner)[:8]}" if owner else ""
    return f"{root.rstrip('/')}/{FOLDER}/{_name(thread_id or session_id)}{part}.md"


@dataclass(frozen=True, slots=True)
class Archived:
    """Where messages are kept, or why they are not; `lost_media` could not get files of their own.

    Those stand in the archive whole. `unsaved` names them, for `Archive.referenced`.
    """

    path: str | None
    lost_media: int = 0
    error: str | None = None
    unsaved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Archive:
    """One file that is only ever added to, and the media beside it; for one compaction."""

    files: Files
    path: str
    _media: Media = field(init=False, repr=False)

    def __post_init__(self) -> None:
        folder, _, _ = self.path.rpartition("/")
        object.__setattr__(self, "_media", Media(f"{folder}/media"))

    def referenced(
        self, messages: Sequence[Message], unsaved: frozenset[str] = frozenset()
    ) -> Sequence[Message]:
        """Return messages that name their media instead of holding them; the same list where none do."""
        return self._media.referenced(messages, unsaved)

    def add(self, messages: Sequence[AnyMessage], *, made_at: str) -> Flow[Archived]:
        """Add a section with these messages, unless it is there already; earlier summaries are left out."""
        new = [each for each in messages if not is_summary(each)]
        if not new:
            return Archived(None)
        body = yield from in_thread(lambda: written(new, self._media))
        mark = _digest(body)[:_MARK_LENGTH]
        try:
            if (yield from self._holds(_end(mark))):
                return Archived(self.path)
            unsaved = yield from self._save_media(new)
            if unsaved:
                body = yield from in_thread(lambda: written(new, self._media, unsaved))
            yield from self.files.append(self.path, _section(mark, body, made_at))
        except ToolFailure as failure:
            return Archived(None, error=failure.text)
        return Archived(self.path, len(unsaved), unsaved=unsaved)

    def _save_media(self, messages: Sequence[BaseMessage]) -> Flow[frozenset[str]]:
        payloads = [
            payload
            for each in messages
            for payload in self._media.inside(each.model_dump(exclude_defaults=True, warnings=False))
        ]
        return (yield from self._media.save(self.files, payloads))

    def _holds(self, end: str) -> Flow[bool]:
        try:
            found = yield from self.files.grep(end, self.path, None, SearchOptions(max_count=1))
        except ToolFailure:
            return False
        return bool(found.matches)


def parse(text: str, media: FetchMedia | None = None) -> list[BaseMessage]:
    """Return the messages of an archive; `media` gives the bytes of a file that it names.

    A section that was not written to its end is passed over, and one that is there twice counts once.
    """
    found: list[BaseMessage] = []
    seen: set[str] = set()
    at = 0
    while beginning := _BEGINNING.search(text, at):
        mark, start = beginning[1], beginning.end()
        stop = start + int(beginning[2])
        at = start
        if text.startswith(_end(mark), stop):
            at = stop
            found += [] if mark in seen else parse_messages(text[start:stop], media)
            seen.add(mark)
    return found


def _section(mark: str, body: str, made_at: str) -> str:
    beginning = f"<!-- section {mark}, {len(body)} characters -->"
    return f"\n## Summarized at {made_at}\n\n{beginning}\n\n{body}{_end(mark)}\n"


def _end(mark: str) -> str:
    return f"<!-- end of section {mark} -->"


def _name(thread: str) -> str:
    return thread if _PLAIN.fullmatch(thread) else artifact_name(thread, _digest(thread)[:_DIGEST_LENGTH])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
