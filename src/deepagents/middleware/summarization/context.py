"""What a request shows of a conversation, and how large that is."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from deepagents.middleware._history import shows_media
from deepagents.middleware._incremental import IncrementalCache
from deepagents.middleware.summarization.clipping import Clipping, Specs
from deepagents.middleware.summarization.counting import ContextCounter, TokenTotal, block_type
from deepagents.middleware.summarization.policy import Load, Piece
from deepagents.middleware.summarization.settings import FULL_SHARE
from deepagents.middleware.summarization.state import (
    CLIPPED_KEY,
    SUMMARIZATION_EVENT_KEY,
    SUMMARIZATION_SESSION_ID_KEY,
    SUMMARIZED_IDS_KEY,
    Clipped,
    CompactionState,
    SummarizationEvent,
)
from deepagents.middleware.summarization.summarizer import is_summary
from deepagents.tools import specs_by_name

logger = logging.getLogger(__name__)
_BOUND_REASONING: Final = frozenset({"thinking", "redacted_thinking", "reasoning_content"})
_BEDROCK: Final = frozenset({"bedrock", "bedrock_converse", "amazon_bedrock"})


@dataclass(frozen=True, slots=True)
class ShownMessages:
    """What is shown of a list of messages, whether the last calls in it are, and its tokens."""

    messages: list[AnyMessage] = field(default_factory=list[AnyMessage])
    calls_are_shown: bool = True
    total: TokenTotal = TokenTotal()


class ContextReader:
    """Works out what requests show; looks at each message once, until something else is hidden or clipped."""

    def __init__(self, counter: ContextCounter, clipping: Clipping) -> None:
        self._counter = counter
        self._clipping = clipping
        self._known = IncrementalCache[ShownMessages]()

    def show(
        self,
        messages: list[AnyMessage],
        memory: CompactionState,
        *,
        own: Sequence[AnyMessage] | None = None,
        provider: str | None = None,
        tools: Sequence[Any] = (),
    ) -> ShownMessages:
        """Return the summary of the last compaction and every message that it does not replace, in order.

        Messages are hidden by id, so that others that are deleted, added or changed meanwhile stay visible.
        Compactions of older versions recorded no ids; they go by `cutoff_index`. `own` are the messages of
        the state, where the request has others.
        """
        summary = _summary_of(messages if own is None else own, memory)
        if summary is None:
            memory = CompactionState(clipped=memory.clipped)
        elif not memory.hidden and all(each.id != summary.id for each in messages if each.id):
            messages = _after_cutoff(messages, memory)

        def begin() -> ShownMessages:
            first: list[AnyMessage] = [] if summary is None else [summary]
            return ShownMessages(first, total=self._counter.add(TokenTotal(), first, provider))

        def go_on(before: ShownMessages, new: Sequence[AnyMessage]) -> ShownMessages:
            return self._extend(before, new, memory, provider, tools)

        # Compared by identity, and a model may spell its provider anew at each call.
        about = (memory.event, memory.hidden or None, memory.clipped, provider and sys.intern(provider))
        shown = self._known.of(messages, begin, go_on, about)
        # Without anything hidden the request's own list goes on, so that no copy of the request is made.
        return shown if summary or memory.clips else replace(shown, messages=messages)

    def _extend(
        self,
        before: ShownMessages,
        new: Sequence[AnyMessage],
        memory: CompactionState,
        provider: str | None,
        tools: Sequence[Any],
    ) -> ShownMessages:
        shown: list[AnyMessage] = []
        calls_are_shown = before.calls_are_shown
        summary_id = memory.event["summary_message"].id if memory.event else None
        from_before = frozenset((memory.event or {}).get("answers_before") or ())
        for message in new:
            is_shown = message.id is None or (message.id not in memory.hidden and message.id != summary_id)
            if isinstance(message, ToolMessage):
                # A result that was put in later is hidden with its call: providers refuse one without it.
                is_shown = is_shown and calls_are_shown
            elif isinstance(message, AIMessage):
                calls_are_shown = is_shown
            if is_shown:
                shown.append(_without_bound_reasoning(message) if message.id in from_before else message)
        if memory.clips:
            shown = self._clipping.show(shown, memory.clips, specs_by_name(tools))
        total = self._counter.add(before.total, shown, provider, memory.outdated_answers)
        return ShownMessages([*before.messages, *shown], calls_are_shown, total)


def _summary_of(own: Sequence[AnyMessage], memory: CompactionState) -> HumanMessage | None:
    """Return the summary to show: none where nothing is left of what there was when it was made."""
    if memory.event is None:
        return None
    is_mapping = isinstance(cast(object, memory.event), Mapping)
    event = cast("Mapping[str, Any]", memory.event if is_mapping else {})
    summary, cutoff = event.get("summary_message"), event.get("cutoff_index")
    if not isinstance(summary, HumanMessage) or not isinstance(cutoff, int) or cutoff < 0:
        logger.warning("Showing the whole conversation: its compaction is malformed (%r)", memory.event)
        return None
    there = {event.get("after_id"), *(event.get("answers_before") or ())}
    if memory.hidden and not any(each.id in memory.hidden or each.id in there for each in own if each.id):
        return None
    return summary


def _after_cutoff(messages: list[AnyMessage], memory: CompactionState) -> list[AnyMessage]:
    cutoff = memory.event["cutoff_index"] if memory.event else 0
    if cutoff > len(messages):
        logger.warning("A summary stands for %d messages, but there are only %d", cutoff, len(messages))
    return messages[cutoff:]


def _without_bound_reasoning(message: AnyMessage) -> AnyMessage:
    """Return a message without reasoning that its provider signed for the context that it was made in."""
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return message
    metadata: dict[str, Any] = message.response_metadata
    provider = metadata.get("model_provider")
    kinds = _BOUND_REASONING
    if provider is not None:
        model = f"{metadata.get('model_name') or metadata.get('model_id') or ''}".lower()
        is_claude = provider == "anthropic" or (
            provider in _BEDROCK and ("claude" in model or "anthropic" in model)
        )
        kinds = _BOUND_REASONING | {"reasoning"} if is_claude else frozenset[str]()
    blocks: list[Any] = message.content
    content = [block for block in blocks if block_type(block) not in kinds]
    return message if len(content) == len(blocks) else message.model_copy(update={"content": content})


@dataclass(frozen=True, slots=True)
class Context:
    """One request as it is to be shown, its size, and what the state is to take if it is shown so."""

    model: BaseChatModel
    system: SystemMessage | None
    tools: Sequence[Any]
    own: Sequence[AnyMessage]
    shown: list[AnyMessage]
    memory: CompactionState
    window: int | None
    tokens: int = 0
    first_reported: int = 0
    update: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def specs(self) -> Specs:
        """The facts about its tools."""
        return specs_by_name(self.tools)

    @property
    def load(self) -> Load:
        """Its size, for the policy."""
        return Load(self.tokens, len(self.shown), self.window)

    @property
    def since(self) -> Load | None:
        """Its size right after the compaction whose summary it shows."""
        event = self.memory.event
        if event is None or not self.shown or not is_summary(self.shown[0]):
            return None
        if "tokens_after" not in event or "messages_after" not in event:
            return None
        # Reports can have it full at once; the next compaction waits for new text all the same.
        is_full = self.window is not None and self.first_reported >= FULL_SHARE * self.window
        return Load(self.first_reported if is_full else event["tokens_after"], event["messages_after"])

    @property
    def only_here(self) -> frozenset[int]:
        """The positions of messages that only this request has: they stay in it, and no archive gets them."""
        own = {each.id for each in self.own if each.id}
        found: set[int] = set()
        with_call = False
        for at, message in enumerate(self.shown):
            if isinstance(message, ToolMessage):
                is_only_here = with_call
            else:
                is_only_here = message.id not in own and not is_summary(message)
                with_call = is_only_here and isinstance(message, AIMessage)
            if is_only_here:
                found.add(at)
        return frozenset(found)

    def clip(self, ids: Mapping[str, str | None], shown: list[AnyMessage]) -> Context:
        """Return the context with more messages clipped, which the state is to remember."""
        clipped: Clipped = {"ids": {**self.memory.clips, **ids}, "answers_before": answers(shown)}
        memory = replace(self.memory, clipped=clipped)
        return replace(self, shown=shown, memory=memory, update={**self.update, CLIPPED_KEY: clipped})

    def compact(
        self, event: SummarizationEvent, ids: Sequence[str], kept: Sequence[AnyMessage], session: str
    ) -> Context:
        """Return the context after a compaction, which the state is to remember."""
        shown = [event["summary_message"], *kept]
        earlier: Sequence[str] = self.update.get(SUMMARIZED_IDS_KEY, ())
        update = {
            **self.update,
            SUMMARIZATION_EVENT_KEY: event,
            SUMMARIZED_IDS_KEY: [*earlier, *ids],
            SUMMARIZATION_SESSION_ID_KEY: session,
        }
        clipped = self.memory.clipped
        if clipped is not None:
            left = {each.id for each in shown}
            still = {each: path for each, path in clipped["ids"].items() if each in left}
            clipped = update[CLIPPED_KEY] = Clipped(ids=still, answers_before=event.get("answers_before", []))
        hidden = {**self.memory.hidden, **dict.fromkeys(ids)}
        memory = CompactionState(event, hidden, clipped, session)
        return replace(self, shown=shown, memory=memory, update=update)


def answers(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the ids of the model's messages."""
    return [each.id for each in messages if isinstance(each, AIMessage) and each.id]


def as_piece(message: AnyMessage, tokens: int) -> Piece:
    """Describe a message for the policy."""
    if isinstance(message, AIMessage):
        made = [*message.tool_calls, *message.invalid_tool_calls]
        return Piece("model", tokens, calls=tuple(call["id"] for call in made if call["id"]))
    if isinstance(message, ToolMessage):
        return Piece("tool", tokens, answers=message.tool_call_id)
    if is_summary(message):
        return Piece("summary", tokens)
    return Piece("media" if shows_media(message) else "human", tokens)
