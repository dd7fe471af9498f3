"""Compaction: what is old goes to the archive whole, and a summary takes its place."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, cast

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.errors import GraphBubbleUp

from deepagents._async import IOCall, as_io_call, gather, in_thread
from deepagents._deprecation import warn_caller
from deepagents._state.runtime import has_channel, in_graph
from deepagents._text import described
from deepagents.backends.calls import Files
from deepagents.backends.state import CHANNEL
from deepagents.errors import BackendError
from deepagents.middleware.summarization.archive import Archive, Archived, archive_path
from deepagents.middleware.summarization.caches import BoundedCache
from deepagents.middleware.summarization.context import Context, answers
from deepagents.middleware.summarization.counting import Meter
from deepagents.middleware.summarization.media import may_hold_media
from deepagents.middleware.summarization.place import Place
from deepagents.middleware.summarization.state import SummarizationEvent
from deepagents.middleware.summarization.summarizer import Summarizer
from deepagents.middleware.summarization.summary import (
    evicted_request,
    extracts,
    is_summary,
    summary_message,
)
from deepagents.permissions import Rules

logger = logging.getLogger(__name__)

_NOT_ARCHIVED: Final = (
    "Offloading conversation history to backend failed: {error}. The evicted messages are in the state "
    "alone, until the next compaction archives them."
)
_MEDIA_LOST: Final = (
    "{many} media of the evicted messages could not be offloaded to files; they stand in the archive itself."
)


class SummaryFailed(Exception):
    """Nobody could sum up what was to be evicted."""


@dataclass(frozen=True, slots=True)
class Case:
    """A context that is to be compacted, parted in what goes and what stays."""

    context: Context
    evicted: Sequence[AnyMessage]
    kept: Sequence[AnyMessage]

    @property
    def ids(self) -> list[str]:
        """The ids of the messages that are newly evicted."""
        return [each.id for each in self.evicted if each.id and not is_summary(each)]

    @property
    def whole(self) -> list[AnyMessage]:
        """The evicted messages as the state holds them, whatever requests showed of them."""
        own = {each.id: each for each in self.context.originals if each.id is not None}
        new = [each for each in self.evicted if not is_summary(each)]
        return [own.get(each.id, each) if each.id is not None else each for each in new]

    @property
    def owed(self) -> list[AnyMessage]:
        """The messages for the archive: what could not be archived before, and what is evicted now."""
        memory = self.context.memory
        ids = set(list(memory.hidden)[self.archived :]) if self.archived < len(memory.hidden) else set[str]()
        return [*(each for each in self.context.originals if each.id in ids), *self.whole]

    @property
    def archived(self) -> int:
        """How many of the messages that were hidden before stand in the archive."""
        event, hidden = self.context.memory.event, self.context.memory.hidden
        return event.get("archived", len(hidden) if event.get("file_path") else 0) if event else 0

    @property
    def since(self) -> str | None:
        """The part of the archive that was written to last before this."""
        event = self.context.memory.event
        return event.get("file_path") if event else None

    @property
    def told(self) -> list[AnyMessage]:
        """The evicted messages for the summarizer: as shown, but with their media as the state names them."""
        whole = iter(self.whole)
        pairs = [(each, each if is_summary(each) else next(whole)) for each in self.evicted]
        return [shown if isinstance(shown.content, str) else own for shown, own in pairs]

    @property
    def request(self) -> str | None:
        """What the user asked for last, where no request shows that any more."""
        return evicted_request(self.context.originals, {*self.context.memory.hidden, *self.ids})

    def event(self, message: HumanMessage, archived: Archived, tokens: int) -> SummarizationEvent:
        """Describe the compaction, after which the context has so many tokens."""
        event: SummarizationEvent = {
            "cutoff_index": self._cutoff(),
            "summary_message": message,
            "file_path": archived.path or self.since,
            "created_at_index": len(self.context.originals),
            "after_id": self.context.newest,
            "answers_before": answers(self.kept),
            "tokens_after": tokens,
            "messages_after": len(self.kept) + 1,
        }
        if archived.error is not None:
            event["archived"] = self.archived
        return event

    def _cutoff(self) -> int:
        """Count the messages of the state before the first that is kept; never fewer than last time."""
        kept = {each.id for each in self.kept if each.id}
        own = self.context.originals
        at = next((at for at, each in enumerate(own) if each.id in kept), len(own))
        earlier = self.context.memory.event
        return max(at, earlier["cutoff_index"] if earlier else 0)


@dataclass(frozen=True, slots=True)
class Compactor:
    """Archives and sums up. A summary is remembered for a while: the attempt that it was for may fail."""

    summarizer: Summarizer
    meter: Meter
    rules: Rules = field(default_factory=Rules)
    written: BoundedCache[str] = field(default_factory=BoundedCache[str])

    async def compact(
        self, case: Case, files: Files, place: Place, *, or_extracts: bool = False
    ) -> SummarizationEvent:
        """Return what is to be remembered; `or_extracts` takes extracts where there is no summary.

        Raises:
            SummaryFailed: when there is no summary, and extracts are not wanted.
        """
        archive = Archive(files, _path(files, case, place))
        mark = await _digest(case.evicted)
        key = (place.agent, mark)
        archived, summary = await self._archived_and_summed_up(archive, case, key, insist=or_extracts)
        if isinstance(summary, Exception):
            if not or_extracts:
                raise SummaryFailed(described(summary)) from summary
            logger.warning("No summary could be had, so extracts take its place: %s", described(summary))
            summary = extracts(case.evicted)
        return self._event(case, summary, archived, mark)

    async def _archived_and_summed_up(
        self, archive: Archive, case: Case, key: Hashable, *, insist: bool
    ) -> tuple[Archived, str | Exception]:
        """Do both at the same time; one after the other where the summarizer is told of files with media."""
        told: Sequence[AnyMessage] = case.told
        if not any(map(may_hold_media, told)):
            beside: list[IOCall[Any]] = [
                as_io_call(lambda: _archived(archive, case)),
                as_io_call(lambda: self._summary(told, key, insist=insist)),
            ]
            archived, summary = await gather(beside)
            return archived, summary
        archived = await _archived(archive, case)
        failed = archived.error is not None
        unsaved = await archive.media_names(told) if failed else archived.unsaved
        told = await archive.referenced(told, unsaved)
        return archived, await self._summary(told, key, insist=insist)

    async def _summary(self, told: Sequence[AnyMessage], key: Hashable, *, insist: bool) -> str | Exception:
        known = self.written.get(key)
        if known is not None:
            return known
        try:
            summary = await self.summarizer.summarize(told, insist=insist)
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                raise
            return error
        self.written.put(key, summary)
        return summary

    def _event(self, case: Case, summary: str, archived: Archived, mark: str) -> SummarizationEvent:
        path = archived.path or case.since
        message = summary_message(
            summary,
            path if path is not None and self.rules.decide("read", path) != "deny" else None,
            case.request,
            window=case.context.window,
            message_id=f"summary-{mark[:32]}",
            in_part=archived.error is not None,
        )
        frame = case.context.frame
        measured = case.context.tokens - self.meter.fixed(frame.system, frame.tools)
        sizes = self.meter.each(case.context.shown, measured)
        evicted = set(map(id, case.evicted))
        gone = sum(size for each, size in zip(case.context.shown, sizes, strict=True) if id(each) in evicted)
        gone -= self.meter.added([message])
        return case.event(message, archived, max(case.context.tokens - gone, 0))


def _path(files: Files, case: Case, place: Place) -> str:
    root = files.capabilities().artifacts_root
    return archive_path(root, place.thread, case.context.session, place.namespace)


async def _archived(archive: Archive, case: Case) -> Archived:
    """Save what is evicted, with a warning where that cannot be done."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        _check_kept(archive)
        archived = await archive.add(case.owed, made_at=now, since=case.since)
    except Exception as error:
        if isinstance(error, GraphBubbleUp):
            raise
        archived = Archived(None, error=described(error))
    if archived.error is not None:
        said = _NOT_ARCHIVED.format(error=archived.error)
        logger.error(said)
        warn_caller(said)
    elif archived.lost_media:
        said = _MEDIA_LOST.format(many=archived.lost_media)
        logger.warning(said)
        warn_caller(said)
    return archived


def _check_kept(archive: Archive) -> None:
    """Refuse files in a state that has no place for them: nothing else would tell that they are lost.

    Raises:
        BackendError: where the graph has no channel for files.
    """
    if archive.files.capabilities(archive.path).state_files and in_graph() and not has_channel(CHANNEL):
        raise BackendError(
            "not_supported", "this graph keeps no files in its state; add FilesystemMiddleware"
        )


async def _digest(messages: Sequence[AnyMessage]) -> str:
    if any(map(may_hold_media, messages)):
        return await in_thread(lambda: _hashed(messages))
    return _hashed(messages)


def _hashed(messages: Sequence[AnyMessage]) -> str:
    found = hashlib.sha256()
    for each in messages:
        for piece in _pieces([each.id, each.content, getattr(each, "tool_calls", None)]):
            found.update(piece.encode(errors="surrogatepass"))
    return found.hexdigest()


def _pieces(value: Any) -> Iterator[str]:
    """Walk over a value, each text of it as it is: a copy of media would be felt."""
    match value:
        case str():
            yield f"{len(value)} characters "
            yield value
        case list():
            items = cast("list[Any]", value)
            yield f"{len(items)} items "
            for each in items:
                yield from _pieces(each)
        case dict():
            holder = cast("dict[Any, Any]", value)
            yield from _pieces([each for pair in holder.items() for each in pair])
        case _:
            yield f"{value!r} "
