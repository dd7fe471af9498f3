"""What is done about a context that has grown, whoever asks: clip, compact, move results away."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage

from deepagents._state.custom_events import emit
from deepagents.backends.calls import Files
from deepagents.middleware._incremental import Beginnings
from deepagents.middleware.summarization.caches import BoundedCache, IdentityCache
from deepagents.middleware.summarization.clipping import Clipping
from deepagents.middleware.summarization.compaction import Case, Compactor, SummaryFailed
from deepagents.middleware.summarization.context import Context, Frame, Record
from deepagents.middleware.summarization.counting import Meter
from deepagents.middleware.summarization.overflow import Lesson
from deepagents.middleware.summarization.place import Place, this_place
from deepagents.middleware.summarization.policy import (
    FULL,
    Load,
    Since,
    cut,
    is_due,
    is_worth_asking,
    least_gain,
)
from deepagents.middleware.summarization.sizes import Keep, Trigger
from deepagents.middleware.summarization.state import SUMMARIZATION_SESSION_ID_KEY
from deepagents.middleware.summarization.summary import is_summary
from deepagents.middleware.summarization.tail import LargeResult, large_results, moved
from deepagents.middleware.summarization.view import Copies, Live, visible
from deepagents.models.traits import input_window, model_identifier
from deepagents.permissions import Rules

logger = logging.getLogger(__name__)
_GROWTH_BEFORE_ANOTHER_TRY: Final = 0.05
_LITTLE: Final = 0.05
_HIGH: Final = 16
"""A scale from which on nothing but estimates can make a count higher."""
_AFTER_REFUSAL: Final = Trigger.of(("fraction", 0.85))


@dataclass(frozen=True, slots=True)
class Engine:
    """The settings of one middleware, and what it remembers between calls; anything of that may be lost."""

    model: BaseChatModel
    trigger: Trigger
    keep: Keep
    clipping: Clipping
    meter: Meter
    compactor: Compactor
    copies: Copies = field(default_factory=Copies)
    known: Beginnings[Live] = field(default_factory=Beginnings[Live])
    declined: BoundedCache[int] = field(default_factory=BoundedCache[int])
    frames: BoundedCache[Frame] = field(default_factory=BoundedCache[Frame])
    lessons: BoundedCache[Lesson] = field(default_factory=BoundedCache[Lesson])
    sessions: IdentityCache[str] = field(default_factory=IdentityCache[str])

    def under(self, rules: Rules) -> Engine:
        """Return this engine, with all that it remembers, under the rules of its agent."""
        return replace(self, compactor=replace(self.compactor, rules=rules))

    def place(self, messages: list[AnyMessage], state: Mapping[str, Any]) -> Place:
        """Say where this runs; a conversation gets a name once, also when a call is tried again."""
        own = state.get("messages") or messages
        known: str | None = state.get(SUMMARIZATION_SESSION_ID_KEY)
        return this_place(known or (self.sessions.of(own[0], _named) if own else _named()))

    def context(
        self, messages: list[AnyMessage], state: Mapping[str, Any], frame: Frame, place: Place
    ) -> Context:
        """Return what is to be shown of these messages, as things stand, with its size."""
        memory = Record.of(state, place.session)
        own = state.get("messages") or messages
        shown = self.shown(messages, memory, own)
        context = Context(frame, own, shown, memory, self._window(frame))
        return self._taught(context, self.lessons.get(_taught_by(frame, place)) or Lesson())

    def shown(
        self, messages: list[AnyMessage], memory: Record, own: Sequence[AnyMessage] | None = None
    ) -> list[AnyMessage]:
        """Return the messages as requests show them; `own` are the state's, where these are others."""
        seen = visible(messages, memory.event, memory.hidden, self.copies, self.known, own)
        return self.clipping.clipped(seen, memory.clips)

    def with_new_clips(self, context: Context) -> Context:
        """Return the context with the next batch of old arguments clipped, if it is time for one."""
        batch = self.clipping.next_batch(
            context.shown, self.meter.each, context.load, context.memory.clips.keys()
        )
        if not batch:
            return context
        new = dict.fromkeys(batch)
        return self._measured(context.clipping(new, self.clipping.clipped(context.shown, new)))

    def is_due(self, context: Context, place: Place) -> bool:
        """Tell whether to compact now; not where the last try failed, until it is worth another one."""
        tried = self.declined.get(place.agent)
        if tried is not None and self._fits(context):
            grown = context.tokens - tried
            if 0 <= grown < _GROWTH_BEFORE_ANOTHER_TRY * (context.window or tried):
                return False
        trigger = self._trigger(context)
        if not is_due(trigger, context.load, context.since):
            return False
        return is_due(trigger, self._certain(context), self._since(context))

    def is_worth_asking(self, context: Context) -> bool:
        """Tell whether the model may have its context compacted."""
        return is_worth_asking(self.trigger, context.load)

    async def compacted_or_not(self, context: Context, files: Files, place: Place) -> Context:
        """Compact; go on without where there is no summary and the context still fits."""
        try:
            found = await self.compacted(context, files, place, or_extracts=not self._fits(context))
        except SummaryFailed as failure:
            self.declined.put(place.agent, context.tokens)
            logger.warning("Going on without compaction, no summary could be had: %s", failure)
            return context
        return found or context

    async def forced(self, context: Context, files: Files, place: Place) -> Context | None:
        """Return the context compacted after a refusal, whatever that takes; `None` where nothing can go.

        Little is not worth a summary where a large result is in the way.
        """
        context = self._refused(context, place)
        at = self._cut(context, forced=True)
        gone = sum(self._sizes(context)[:at])
        if gone < _LITTLE * context.tokens and self._large_results(context):
            return None
        return await self._compacted(context, at, files, place, or_extracts=True)

    async def compacted(
        self, context: Context, files: Files, place: Place, *, or_extracts: bool = False
    ) -> Context | None:
        """Return the context compacted; `None` when there is nothing worth evicting.

        Raises:
            SummaryFailed: when there is no summary, and extracts are not wanted.
        """
        at = self._cut(context)
        return await self._compacted(context, at, files, place, or_extracts=or_extracts)

    async def _compacted(
        self, context: Context, at: int, files: Files, place: Place, *, or_extracts: bool
    ) -> Context | None:
        if not at:
            return None
        evicted, kept = context.parted(at)
        if all(map(is_summary, evicted)):
            return None
        case = Case(context, evicted, kept)
        event = await self.compactor.compact(case, files, place, or_extracts=or_extracts)
        self.declined.drop(place.agent)
        emit("context_compacted")
        return self._measured(context.after(event, case.ids, [event["summary_message"], *case.kept]))

    async def without_tail(self, context: Context, files: Files, place: Place) -> Context | None:
        """Return the context with large results of the open turn moved to files; `None` without any."""
        context = self._refused(context, place)
        places = await moved(files, self._large_results(context))
        if not places:
            return None
        return self._measured(context.clipping(places, self.clipping.clipped(context.shown, places)))

    def _refused(self, context: Context, place: Place) -> Context:
        """Learn from a refusal, so that the next compaction comes before the next one."""
        high, higher = (self._tokens(context, factor * _HIGH) for factor in (1, 2))
        lesson = context.lesson.after(context.tokens, (higher - high) / _HIGH, context.window)
        self.lessons.put(_taught_by(context.frame, place), lesson)
        return self._taught(context, lesson)

    def _taught(self, context: Context, lesson: Lesson) -> Context:
        windows = [each for each in (self._window(context.frame), lesson.window) if each]
        return self._measured(replace(context, lesson=lesson, window=min(windows, default=None)))

    def _trigger(self, context: Context) -> Trigger:
        """Return when to compact: what was refused tells that too, but not where nothing else does."""
        if context.lesson == Lesson() or not self.trigger.clauses:
            return self.trigger
        return Trigger((*self.trigger.clauses, *_AFTER_REFUSAL.clauses))

    def _window(self, frame: Frame) -> int | None:
        return frame.window or input_window(self.model)

    def _large_results(self, context: Context) -> list[LargeResult]:
        return large_results(context.shown, context.originals, context.memory.clips.keys())

    def _sizes(self, context: Context) -> list[int]:
        return self.meter.each(context.shown, context.tokens - self._fixed(context))

    def _fixed(self, context: Context) -> int:
        return self.meter.fixed(context.frame.system, context.frame.tools)

    def _certain(self, context: Context) -> Load:
        """Return the load without the largest medium that nobody has measured: estimates may be far off."""
        memory, provider = context.memory, context.frame.provider
        medium = self.meter.unmeasured_medium(context.shown, provider, memory.past)
        return replace(context.load, tokens=context.tokens - medium)

    def _since(self, context: Context) -> Since | None:
        """Return the size right after the last compaction; where reports have it full, by what came since."""
        since, window = context.since, context.window
        at = self.meter.first_report(context.shown, context.frame.provider, context.memory.past)
        if since is None or window is None or at is None:
            return since
        before = context.tokens - self.meter.added(context.shown[at:])
        return Since(before, since.messages) if before >= FULL * window else since

    def _cut(self, context: Context, *, forced: bool = False) -> int:
        sizes, passing = self._sizes(context), context.passing
        return cut(
            context.pieces([0 if at in passing else size for at, size in enumerate(sizes)]),
            self.keep,
            window=context.window,
            fixed=self._fixed(context) + sum(sizes[at] for at in passing),
            least=least_gain(self.trigger, context.window),
            forced=forced,
        )

    def _fits(self, context: Context) -> bool:
        return context.window is None or context.tokens < FULL * context.window

    def _measured(self, context: Context) -> Context:
        return replace(context, tokens=self._tokens(context, context.lesson.scale))

    def _tokens(self, context: Context, scale: float) -> int:
        frame = context.frame
        return self.meter.of(
            context.shown,
            frame.system,
            frame.tools,
            provider=frame.provider,
            past=context.memory.past,
            scale=scale,
        )


def _taught_by(frame: Frame, place: Place) -> Hashable:
    return place.agent, frame.provider, model_identifier(frame.model)


def _named(_: object = None) -> str:
    return f"session_{uuid4().hex}"
