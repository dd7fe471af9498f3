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

from deepagents._channels import has_channel, in_graph
from deepagents._deprecation import warn_caller
from deepagents._flow import Call, Flow, as_call, in_thread, together
from deepagents._text import described
from deepagents.backends.calls import Files
from deepagents.backends.state import CHANNEL
from deepagents.errors import BackendError
from deepagents.middleware.summarization.archive import Archive, Archived, archive_path
from deepagents.middleware.summarization.context import Context
from deepagents.middleware.summarization.counting import Meter
from deepagents.middleware.summarization.media import may_hold_media
from deepagents.middleware.summarization.memo import Memo, Place
from deepagents.middleware.summarization.state import SummarizationEvent
from deepagents.middleware.summarization.summarizer import Summarizer
from deepagents.middleware.summarization.summary import (
    evicted_request,
    extracts,
    is_summary,
    summary_message,
)

logger = logging.getLogger(__name__)

_NOT_ARCHIVED: Final = (
    "Offloading conversation history to backend failed: {error}. The evicted messages are in the state "
    "alone, and the summary names no file."
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
    def told(self) -> list[AnyMessage]:
        """The evicted messages for the summarizer: as shown, but with their media as the state names them."""
        whole = iter(self.whole)
        pairs = [(each, each if is_summary(each) else next(whole)) for each in self.evicted]
        return [shown if isinstance(shown.content, str) else own for shown, own in pairs]

    @property
    def request(self) -> str | None:
        """What the user asked for last, where no request shows that any more."""
        return evicted_request(self.context.originals, {*self.context.memory.hidden, *self.ids})

    def event(self, message: HumanMessage, path: str | None, tokens: int) -> SummarizationEvent:
        """Describe the compaction, after which the context has so many tokens."""
        return {
            "cutoff_index": self._cutoff(),
            "summary_message": message,
            "file_path": path,
            "created_at_index": len(self.context.originals),
            "after_id": self.context.newest,
            "tokens_after": tokens,
            "messages_after": len(self.kept) + 1,
        }

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
    written: Memo[str] = field(default_factory=Memo[str])

    def compact(
        self, case: Case, files: Files, place: Place, *, or_extracts: bool = False
    ) -> Flow[SummarizationEvent]:
        """Return what is to be remembered; `or_extracts` takes extracts where there is no summary.

        Raises:
            SummaryFailed: when there is no summary, and extracts are not wanted.
        """
        archive = Archive(files, _path(files, case, place))
        mark = yield from _digest(case.evicted)
        beside: list[Call[Any]] = [
            as_call(lambda: _archived(archive, case)),
            as_call(lambda: self._summary(archive, case, (place.agent, mark), insist=or_extracts)),
        ]
        path, summary = yield from together(beside)
        if isinstance(summary, Exception):
            if not or_extracts:
                raise SummaryFailed(described(summary)) from summary
            logger.warning("No summary could be had, so extracts take its place: %s", described(summary))
            summary = extracts(case.evicted)
        return self._event(case, summary, path, mark)

    def _summary(self, archive: Archive, case: Case, key: Hashable, *, insist: bool) -> Flow[str | Exception]:
        known = self.written.get(key)
        if known is not None:
            return known
        try:
            told = yield from archive.referenced(case.told)
            summary = yield from self.summarizer.summarize(told, insist=insist)
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                raise
            return error
        self.written.put(key, summary)
        return summary

    def _event(self, case: Case, summary: str, path: str | None, mark: str) -> SummarizationEvent:
        window = case.context.window
        message_id = f"summary-{mark[:32]}"
        message = summary_message(summary, path, case.request, window=window, message_id=message_id)
        frame = case.context.frame
        measured = case.context.tokens - self.meter.fixed(frame.system, frame.tools)
        sizes = self.meter.each(case.context.shown, measured)
        gone = sum(sizes[: len(case.evicted)]) - sum(self.meter.each([message]))
        return case.event(message, path, max(case.context.tokens - gone, 0))


def _path(files: Files, case: Case, place: Place) -> str:
    root = files.capabilities().artifacts_root
    return archive_path(root, place.thread, case.context.session, place.namespace)


def _archived(archive: Archive, case: Case) -> Flow[str | None]:
    """Return the file that holds what is evicted; `None`, with a warning, where it could not be saved."""
    event = case.context.memory.event
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        _check_kept(archive)
        archived = yield from archive.add(case.whole, made_at=now, since=event and event["file_path"])
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
    return archived.path


def _check_kept(archive: Archive) -> None:
    """Refuse files in a state that has no place for them: nothing else would tell that they are lost.

    Raises:
        BackendError: where the graph has no channel for files.
    """
    if archive.files.capabilities(archive.path).state_files and in_graph() and not has_channel(CHANNEL):
        raise BackendError(
            "not_supported", "this graph keeps no files in its state; add FilesystemMiddleware"
        )


def _digest(messages: Sequence[AnyMessage]) -> Flow[str]:
    if any(map(may_hold_media, messages)):
        return (yield from in_thread(lambda: _hashed(messages)))
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
