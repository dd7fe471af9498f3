"""What is evicted from the context, whole and readable, in files of its own for each conversation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from langchain_core.messages import AnyMessage, BaseMessage

from deepagents._async import in_thread
from deepagents.backends.calls import Files, SearchOptions
from deepagents.errors import ToolFailure
from deepagents.middleware.summarization.media import Media, Message, Payload, may_hold_media
from deepagents.middleware.summarization.parts import (
    FOLDER,
    PART_BYTES,
    archive_path,
    part_number,
    part_path,
    part_sizes,
)
from deepagents.middleware.summarization.summary import is_summary
from deepagents.middleware.summarization.transcript import FetchMedia, parse_messages, written

__all__ = ["Archive", "Archived", "archive_path", "parse"]

_SECTION_MARK: Final = 16
_MESSAGE_MARK: Final = 12
_BEGINNING = re.compile(r"^<!-- section ([0-9a-f]{16}), (\d+) characters -->\n\n", re.MULTILINE)
_ENDING: Final = "<!-- end of section "
_END = re.compile(r"<!-- end of section ([0-9a-f]{16}):((?: [0-9a-f]{12})+) -->")


@dataclass(frozen=True, slots=True)
class Archived:
    """The part that messages were added to last, or why they are not kept.

    `lost_media` could not get files of their own and stand in the archive whole; `unsaved` names them, for
    `Archive.referenced`.
    """

    path: str | None
    lost_media: int = 0
    error: str | None = None
    unsaved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A message as it is written down, and what it is known by."""

    message: BaseMessage
    body: str
    mark: str

    @property
    def size(self) -> int:
        return len(self.body.encode())


@dataclass(frozen=True, slots=True)
class Archive:
    """Files that are only ever added to, and the media beside them; for one compaction.

    `path` is the first of them; another one is begun before one would have more than `part_bytes`.
    """

    files: Files
    path: str
    part_bytes: int = PART_BYTES
    _media: Media = field(init=False, repr=False)

    def __post_init__(self) -> None:
        root, _, _ = self.path.rpartition(f"/{FOLDER}/")
        object.__setattr__(self, "_media", Media(f"{root}/{FOLDER}/media", root))

    async def referenced(
        self, messages: Sequence[Message], unsaved: frozenset[str] = frozenset()
    ) -> Sequence[Message]:
        """Return messages that name their media instead of holding them; the same list where none do."""
        if not any(map(may_hold_media, messages)):
            return messages
        return await in_thread(lambda: self._media.referenced(messages, unsaved))

    async def add(
        self, messages: Sequence[AnyMessage], *, made_at: str, since: str | None = None
    ) -> Archived:
        """Add those of the messages that are not there whole yet; earlier summaries are left out.

        `since` is the part that the last compaction wrote to: none of the messages can be in an earlier one.
        """
        new = [each for each in messages if not is_summary(each)]
        if not new:
            return Archived(None)
        entries = await in_thread(lambda: list(self._entries(new)))
        sizes = await part_sizes(self.files, self.path)
        newest = max(sizes, default=1)
        known = await self._known(part_number(since or "", self.path) or 1, newest)
        missing = [each for each in entries if each.mark not in known]
        if not missing:
            return Archived(part_path(self.path, newest))
        try:
            return await self._added(missing, newest, sizes.get(newest, 0), made_at)
        except ToolFailure as failure:
            return Archived(None, error=failure.text)

    async def media_names(self, messages: Sequence[Message]) -> frozenset[str]:
        """Name all media that stand inline in messages."""
        payloads = await in_thread(lambda: list(self._payloads(messages)))
        return frozenset(each.name for each in payloads)

    async def messages(self) -> list[BaseMessage]:
        """Return all messages of all parts, with their media.

        Raises:
            ToolFailure: where a file cannot be read.
        """
        texts: list[str] = []
        for number in sorted(await part_sizes(self.files, self.path)):
            whole = await self.files.download(part_path(self.path, number))
            texts.append(whole.decode())
        named: list[str] = []
        parse("".join(texts), lambda path: named.append(path) or b"")
        media: dict[str, bytes] = {}
        for path in dict.fromkeys(named):
            media[path] = await self.files.download(path)
        return parse("".join(texts), media.__getitem__)

    def _entries(self, messages: Sequence[BaseMessage]) -> Iterator[_Entry]:
        before = ""
        for message in messages:
            body = written([message], self._media)
            context = "" if message.id else before
            before = _digest(f"{self.path}\n{context}\n{body}")[:_MESSAGE_MARK]
            yield _Entry(message, body, before)

    async def _known(self, first: int, newest: int) -> frozenset[str]:
        """Return the marks of all messages that stand whole in these parts."""
        marks: set[str] = set()
        for number in range(min(first, newest), newest + 1):
            try:
                found = await self.files.grep(_ENDING, part_path(self.path, number), None, SearchOptions())
            except ToolFailure:
                continue
            ends = [_END.fullmatch(each["text"].strip()) for each in found.matches or ()]
            marks.update(mark for end in ends if end for mark in end[2].split())
        return frozenset(marks)

    async def _added(self, entries: Sequence[_Entry], number: int, size: int, made_at: str) -> Archived:
        unsaved = await self._save_media([each.message for each in entries])
        if unsaved:
            entries = await in_thread(lambda: [self._with_media(each, unsaved) for each in entries])
        for section in _sections(entries, self.part_bytes):
            text = _written(section, made_at)
            many = len(text.encode())
            if size and size + many > self.part_bytes:
                number, size = number + 1, 0
            await self.files.append(part_path(self.path, number), text)
            size += many
        return Archived(part_path(self.path, number), len(unsaved), unsaved=unsaved)

    def _with_media(self, entry: _Entry, unsaved: frozenset[str]) -> _Entry:
        return replace(entry, body=written([entry.message], self._media, unsaved))

    async def _save_media(self, messages: Sequence[BaseMessage]) -> frozenset[str]:
        return await self._media.save(self.files, self._payloads(messages))

    def _payloads(self, messages: Iterable[BaseMessage]) -> Iterator[Payload]:
        for each in messages:
            yield from self._media.inside(each.model_dump(exclude_defaults=True, warnings=False))


def parse(text: str, media: FetchMedia | None = None) -> list[BaseMessage]:
    """Return the messages of an archive; `media` gives the bytes of a file that it names.

    The text is that of its parts, one after the other. A section that was not written to its end is passed
    over, and one that is there twice counts once.
    """
    found: list[BaseMessage] = []
    seen: set[str] = set()
    at = 0
    while beginning := _BEGINNING.search(text, at):
        mark, start = beginning[1], beginning.end()
        stop = start + int(beginning[2])
        at = start
        end = _END.match(text, stop)
        if end and end[1] == mark:
            at = stop
            found += [] if mark in seen else parse_messages(text[start:stop], media)
            seen.add(mark)
    return found


def _sections(entries: Sequence[_Entry], most: int) -> Iterator[Sequence[_Entry]]:
    """Group messages so that no group is larger than a part, but for a single message that is."""
    section: list[_Entry] = []
    size = 0
    for entry in entries:
        if section and size + entry.size > most:
            yield section
            section, size = [], 0
        section.append(entry)
        size += entry.size
    yield section


def _written(section: Sequence[_Entry], made_at: str) -> str:
    body = "".join(each.body for each in section)
    mark = _digest(body)[:_SECTION_MARK]
    beginning = f"<!-- section {mark}, {len(body)} characters -->"
    marks = " ".join(each.mark for each in section)
    return f"\n## Summarized at {made_at}\n\n{beginning}\n\n{body}{_ENDING}{mark}: {marks} -->\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
