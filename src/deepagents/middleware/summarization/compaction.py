"""Make a context smaller: clip it, compact it, and after a refusal do whatever else helps."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import UUID, uuid4, uuid5

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from deepagents._async import Coro, IOCall, as_io_call, gather, in_thread
from deepagents._deprecation import warn_caller
from deepagents._state.runtime import configurable, emit
from deepagents._text import describe_exception
from deepagents._values import field, replace, valueclass
from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware._history import is_from_person, open_turn
from deepagents.middleware._incremental import BoundedCache
from deepagents.middleware._offload import large_result_path, save_text, split_content
from deepagents.middleware.approval import DECIDED
from deepagents.middleware.summarization.archive import Archive, Archived, archive_path, describe_parts
from deepagents.middleware.summarization.clipping import Specs, point_to_file
from deepagents.middleware.summarization.context import (
    CompactionState,
    Context,
    ContextReader,
    as_piece,
)
from deepagents.middleware.summarization.policy import (
    AFTER_REFUSAL,
    FULL_SHARE,
    LEAST_GAIN,
    Load,
    Size,
    Trigger,
    cut,
    is_due,
    least_gain,
)
from deepagents.middleware.summarization.summarizer import (
    AskInPlace,
    Summarizer,
    extract,
    is_summary,
    summary_message,
)
from deepagents.middleware.summarization.words import show_words
from deepagents.models.traits import input_window, model_provider
from deepagents.permissions import Rules
from deepagents.tools import specs_by_name
from deepagents.tools._tool import CHARACTERS_PER_TOKEN

logger = logging.getLogger(__name__)

_NOT_ARCHIVED: Final = (
    "Offloading conversation history to backend failed: {error}. The evicted messages are in the state "
    "alone, until the next compaction archives them."
)
_MEDIA_LOST: Final = (
    "{many} media of the evicted messages could not be offloaded to files; they stand in the archive itself."
)


class SummaryFailed(Exception):
    """No summary could be had of what was to be evicted."""


@valueclass
class ContextCompactor:
    """The settings of one middleware; what it remembers between calls may be lost at any time."""

    model: BaseChatModel
    trigger: Trigger
    keep: Size
    summarizer: Summarizer
    reader: ContextReader
    rules: Rules = field(default_factory=Rules)
    failed_at: BoundedCache[int] = field(default_factory=BoundedCache[int])
    summaries: BoundedCache[str] = field(default_factory=BoundedCache[str])
    secret: UUID = field(default_factory=uuid4)

    def read(
        self,
        messages: list[AnyMessage],
        state: Mapping[str, Any],
        model: BaseChatModel,
        system: SystemMessage | None = None,
        tools: Sequence[Any] = (),
    ) -> Context:
        """Return what a request with these messages is to show, as things are."""
        own: Sequence[AnyMessage] = state.get("messages") or messages
        memory, provider, specs = CompactionState.of(state), model_provider(model), specs_by_name(tools)
        shown = self.reader.show(messages, memory, own=own, provider=provider, specs=specs)
        total = shown.total
        tokens, fixed = self.reader.counter.size(total, shown.messages, system, tools)
        window = input_window(model) or input_window(self.model)
        old = tokens - total.new
        # Reports can have it full at once; the next compaction waits for new text all the same.
        if window is None or old < FULL_SHARE * window:
            old = tokens - int(total.new * (tokens - fixed) / max(total.counted, 1))
        return Context(specs, own, state, shown.messages, window, tokens, fixed, (old, shown.old))

    def clip(self, context: Context) -> Context:
        """Return the context with the next batch of old arguments clipped, if it is time for one."""
        load = Load(context.tokens, len(context.shown), context.window)
        batch = self.reader.clipping.next_batch(
            context.shown, lambda: self._sizes(context), load, context.specs, context.memory.clips.keys()
        )
        return self._with_clips(context, dict.fromkeys(batch)) if batch else context

    def can_ask_in_place(self, context: Context, model: BaseChatModel) -> bool:
        """Return whether the conversation's own model writes its summary, and has room for that."""
        asked = context.tokens + self.summarizer.order_tokens
        has_room = context.window is None or asked < FULL_SHARE * context.window
        # The whole conversation may be more than a caller lets the summarizer read.
        most = self.summarizer.most_tokens
        return has_room and (most is None or context.tokens <= most) and self.summarizer.is_written_by(model)

    async def compact_if_due(
        self,
        context: Context,
        open_files: Callable[[], FileCalls],
        find_in_place: Callable[[], AskInPlace | None],
    ) -> Context:
        """Compact if it is time; go on without where there is no summary and the context still fits.

        After a failure the context has to grow a little before the next attempt.
        """
        fits = context.window is None or context.tokens < FULL_SHARE * context.window
        failed_at = self.failed_at.get(_conversation(context))
        grown = context.tokens - (failed_at or 0)
        waits = failed_at is not None and 0 <= grown < LEAST_GAIN * (context.window or failed_at)
        if not is_due(self.trigger, context.load) or (fits and waits):
            return context
        try:
            done = await self.compact(context, open_files(), or_extract=not fits, in_place=find_in_place())
            return done or context
        except SummaryFailed as failure:
            self.failed_at[_conversation(context)] = context.tokens
            logger.warning("Going on without compaction, no summary could be had: %s", failure)
            return context

    async def compact(
        self,
        context: Context,
        files: FileCalls,
        *,
        or_extract: bool = False,
        at: int | None = None,
        in_place: AskInPlace | None = None,
        written: str | None = None,
    ) -> Context | None:
        """Return the context compacted, cut by the settings or at a message; `None` without enough to evict.

        `written` is a summary that there is already; extracts take the place of an empty one.

        Raises:
            SummaryFailed: when there is no summary, and `or_extract` does not ask for extracts instead.
        """
        at = self._cut(context) if at is None else at
        only_here = context.only_here if at else frozenset[int]()
        evicted = [each for index, each in enumerate(context.shown[:at]) if index not in only_here]
        kept = [each for index, each in enumerate(context.shown) if index >= at or index in only_here]
        if all(map(is_summary, evicted)):
            return None
        # In a thread: a context holds megabytes, and hashing them would hold up the event loop.
        digest = await in_thread(lambda: _digest(evicted))
        # The same when the call is made again, and unknown to others who have the same messages.
        session = context.memory.session or f"session_{uuid5(self.secret, digest).hex}"
        archive = Archive(files, _archive_path(files, session))
        summarize = partial(
            self._summarize, digest=digest, specs=context.specs, or_extract=or_extract, in_place=in_place
        )
        if written is not None:
            summarize = partial(_take, written, context.specs)
        archived, summary = await self._archive_and_summarize(context, evicted, archive, summarize)
        if isinstance(summary, SummaryFailed):
            raise summary
        ids = [each.id for each in evicted if each.id and not is_summary(each)]
        path = archived.path or context.memory.file_path
        named = path if path is not None and self.rules.decide("read", path) != "deny" else None
        message = summary_message(
            summary,
            named,
            partial(self._show_words, context, {*context.memory.hidden, *ids}, named),
            window=context.window,
            # The same when the call is made again, so that the state never holds two.
            message_id=f"summary-{digest[:32]}",
            in_part=archived.error is not None,
        )
        self.failed_at.pop(_conversation(context), None)
        emit("context_compacted")
        tokens = self._tokens_with(context, [message, *kept])
        compacted = context.compact(message, ids, kept, path, session, archived=archived.error is None)
        return replace(compacted, tokens=tokens)

    def _show_words(
        self, context: Context, evicted: Container[str | None], path: str | None, room: int
    ) -> str | None:
        decided: Mapping[str, Any] = context.state.get(DECIDED) or {}
        # Where a provider counts more tokens than we do, so many characters are more than we think.
        room = int(room / max(self._scale(context), 1))
        where = path and describe_parts(path)
        return show_words(context.own, evicted, decided, room=room, where=where)

    async def shrink(self, context: Context, files: FileCalls) -> Context | None:
        """Return the context after it was refused, as small as it can be; `None` if nothing can go.

        Only what has to stay does. Its largest texts move to files, until it has at most half of what was
        refused; a thread whose provider takes far less than we think goes on with the next message.
        """
        at = self._cut_all(context)
        limit = int(AFTER_REFUSAL * min(context.tokens, context.window or context.tokens))
        smaller = await self._move_out(context, context.shown[at:], limit, files)
        # A summary of next to nothing is not worth it where a large result is in the way.
        if sum(self._sizes(smaller)[:at]) >= LEAST_GAIN * smaller.tokens:
            smaller = await self.compact(smaller, files, or_extract=True, at=at) or smaller
        return None if smaller is context else smaller

    def _cut_all(self, context: Context) -> int:
        """Return the index from which on all has to stay: a person's last words, or results not seen yet."""
        shown = context.shown
        at = len(shown) - len(open_turn(shown)) - 1
        went_on = bool(context.own) and is_from_person(context.own[-1])
        if went_on:
            # Older results that were not seen can go: they are in the archive.
            at = max((at for at, each in enumerate(shown) if each.id == context.own[-1].id), default=at)
        keep = Size("messages", len(shown) - max(at, 0))
        return self._cut(replace(context, window=None), keep, unseen_too=went_on)

    async def _move_out(
        self, context: Context, staying: Sequence[AnyMessage], limit: int, files: FileCalls
    ) -> Context:
        """Move the largest texts of what stays to files, until it has at most `limit` tokens."""
        moved: dict[str, str | None] = {}
        size = self._tokens_with(context, staying)
        scale = self._scale(context) / CHARACTERS_PER_TOKEN
        for message, source in _movable(context, staying):
            if size <= limit:
                break
            text, _ = split_content(message.content)
            path = source or large_result_path(
                files, getattr(message, "tool_call_id", message.id) or "", text
            )
            saving = len(text) - len(split_content(point_to_file(message, path, context.specs).content)[0])
            if saving <= 0:
                continue
            try:
                if source is None:
                    await save_text(files, path, text)
            except ToolFailure:
                continue
            moved[message.id or ""] = path
            size -= int(saving * scale)
        return self._with_clips(context, moved) if moved else context

    async def _archive_and_summarize(
        self,
        context: Context,
        evicted: Sequence[AnyMessage],
        archive: Archive,
        summarize: Callable[[Sequence[AnyMessage]], Coro[str | SummaryFailed]],
    ) -> tuple[Archived, str | SummaryFailed]:
        """Do both at the same time; media come first, so that the summarizer is shown their files."""
        own = {each.id: each for each in context.own if each.id is not None}
        whole = [own.get(each.id or "", each) for each in evicted]
        # What could not be archived before goes first.
        owed = set(list(context.memory.hidden)[context.memory.archived :])
        messages = [each for each in context.own if owed and each.id in owed]
        messages += [each for each in whole if not is_summary(each)]
        # The state names media that a request may hold as bytes.
        asked = [
            each if isinstance(each.content, str) else original
            for each, original in zip(evicted, whole, strict=True)
        ]
        named = await archive.media.name(asked, archive.files)
        both: list[IOCall[Any]] = [
            as_io_call(lambda: _archive(archive, messages, context.memory.file_path)),
            as_io_call(lambda: summarize(named)),
        ]
        archived, summary = await gather(both)
        return archived, summary

    async def _summarize(
        self,
        messages: Sequence[AnyMessage],
        *,
        digest: str,
        specs: Specs,
        or_extract: bool,
        in_place: AskInPlace | None,
    ) -> str | SummaryFailed:
        # The model call that a summary was made for may fail and be made again.
        if digest in self.summaries:
            return self.summaries[digest]
        try:
            summary = await self.summarizer.summarize(messages, insist=or_extract, in_place=in_place)
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                raise
            failure = SummaryFailed(describe_exception(error))
            if not or_extract:
                return failure
            logger.warning("No summary could be had, so extracts take its place: %s", failure)
            return extract(messages, specs)
        self.summaries[digest] = summary
        return summary

    def _cut(self, context: Context, keep: Size | None = None, *, unseen_too: bool = False) -> int:
        only_here, sizes = context.only_here, self._sizes(context)
        pieces = [
            as_piece(message, 0 if at in only_here else size)
            for at, (message, size) in enumerate(zip(context.shown, sizes, strict=True))
        ]
        return cut(
            pieces,
            keep or self.keep,
            window=context.window,
            fixed=context.fixed + sum(sizes[at] for at in only_here),
            least=0 if keep else least_gain(self.trigger, context.load),
            unseen_too=unseen_too,
        )

    def _with_clips(self, context: Context, ids: Mapping[str, str | None]) -> Context:
        shown = self.reader.clipping.show(context.shown, ids, context.specs)
        return replace(context.clip(ids, shown), tokens=self._tokens_with(context, shown))

    def _tokens_with(self, context: Context, messages: Sequence[AnyMessage]) -> int:
        """Return the size of the context with other messages, their estimate scaled as it is for these."""
        return context.fixed + int(self._scale(context) * self.reader.counter.estimate(messages))

    def _scale(self, context: Context) -> float:
        """Return how much larger the messages are than their estimate."""
        return (context.tokens - context.fixed) / max(self.reader.counter.estimate(context.shown), 1)

    def _sizes(self, context: Context) -> list[int]:
        scale = self._scale(context)
        return [int(scale * self.reader.counter.estimate([each])) for each in context.shown]


def _conversation(context: Context) -> str | None:
    return context.own[0].id if context.own else None


def _archive_path(files: FileCalls, session: str) -> str:
    """Return the archive of the thread that this code runs in, or of a conversation without one."""
    given = configurable()
    thread, namespace = given.get("thread_id"), str(given.get("checkpoint_ns") or "")
    name = None if thread is None else str(thread)
    return archive_path(files.capabilities().artifacts_root, name, session, namespace)


def _movable(context: Context, staying: Sequence[AnyMessage]) -> list[tuple[AnyMessage, str | None]]:
    """Return of what stays what the model has not seen yet and could read in a file, the largest first.

    With each comes the file that it was read from, if it was.
    """
    own = {each.id: each for each in context.own}
    asked = next((each for each in reversed(context.shown) if isinstance(each, AIMessage)), None)
    found = [
        (whole, _read_from(whole, asked, context.specs))
        for each in open_turn(staying)
        if isinstance(each, ToolMessage | HumanMessage) and not is_summary(each)
        if each.id is not None and each.id not in context.memory.clips
        if isinstance(whole := own.get(each.id), ToolMessage | HumanMessage)
    ]
    return sorted(found, key=lambda pair: -len(split_content(pair[0].content)[0]))


def _read_from(message: AnyMessage, asked: AIMessage | None, specs: Specs) -> str | None:
    """Return the file that a successful call showed, if it was one that only reads."""
    spec = specs.get(message.name or "")
    if not isinstance(message, ToolMessage) or message.status == "error" or not spec or spec.effect != "read":
        return None
    calls = asked.tool_calls if asked else ()
    return next((spec.path_in(each["args"]) for each in calls if each["id"] == message.tool_call_id), None)


async def _archive(archive: Archive, messages: Sequence[AnyMessage], since: str | None) -> Archived:
    """Save evicted messages, with a warning where that cannot be done."""
    try:
        # Whatever fails in here is a warning: the state still has all messages.
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        archived = await archive.add(messages, made_at=made_at, since=since)
    except Exception as error:
        if isinstance(error, GraphBubbleUp):
            raise
        archived = Archived(None, describe_exception(error))
    text = None
    if archived.error is not None:
        text = _NOT_ARCHIVED.format(error=archived.error)
    elif archive.media.unsaved:
        text = _MEDIA_LOST.format(many=len(archive.media.unsaved))
    if text:
        logger.error(text)
        warn_caller(text)
    return archived


async def _take(written: str, specs: Specs, messages: Sequence[AnyMessage]) -> str:
    return written or extract(messages, specs)


def _digest(messages: Sequence[AnyMessage]) -> str:
    """Return what tells these messages from any others, also after they were loaded from a checkpoint."""
    found = hashlib.sha256()
    for each in messages:
        text = repr((each.id, each.content, getattr(each, "tool_calls", None)))
        found.update(text.encode(errors="surrogatepass"))
    return found.hexdigest()
