"""Hold what a request shows of a conversation, how large that is, and what the state remembers of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, TypeAlias

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from typing_extensions import TypedDict

from deepagents._state.channels import SNAPSHOT_AFTER, GrowingChannel
from deepagents._state.schema import keep_latest
from deepagents._values import field, replace, valueclass
from deepagents.middleware._history import shows_media
from deepagents.middleware._incremental import IncrementalCache
from deepagents.middleware.summarization.clipping import Clipping, Specs
from deepagents.middleware.summarization.counting import ContextCounter, TokenTotal, block_type
from deepagents.middleware.summarization.policy import Load, Piece
from deepagents.middleware.summarization.summarizer import is_summary
from deepagents.models.traits import reasoning_bound_to_context
from deepagents.tools import specs_by_name

SUMMARIZATION_EVENT_KEY: Final = "_summarization_event"
SUMMARIZATION_SESSION_ID_KEY: Final = "_summarization_session_id"
SUMMARIZED_IDS_KEY: Final = "_summarized_ids"
CLIPPED_KEY: Final = "_clipped_messages"


class SummarizationEvent(TypedDict):
    """The last compaction: which messages a summary replaces, and where they are kept whole.

    `cutoff_index` counts raw messages of the state, for readers of older versions; what is hidden is decided
    by id (`_summarized_ids`). `kept_ids` are the messages that stayed: what a provider reported with those of
    the model counts another context. `archived` says how many of the hidden messages are in the archive.
    """

    cutoff_index: int
    summary_message: HumanMessage
    file_path: str | None
    kept_ids: NotRequired[list[str]]
    archived: NotRequired[int]


Clips: TypeAlias = Mapping[str, str | None]
"""The messages that requests show clipped, by id, each with the file that holds what was clipped.

The file is `None` where the message's own calls name it.
"""


def latest_event(
    current: SummarizationEvent | None, new: SummarizationEvent | None
) -> SummarizationEvent | None:
    """Keep, of two compactions, the one that hides more; `None` forgets."""
    if current is None or new is None:
        return new
    return new if new["cutoff_index"] >= current["cutoff_index"] else current


def join_ids(known: dict[str, None] | None, writes: Sequence[Sequence[str]]) -> dict[str, None]:
    """Add lists of ids to the ids that are known, in their order."""
    return {**(known or {}), **dict.fromkeys(each for write in writes for each in write)}


def first_session(current: str | None, new: str | None) -> str | None:
    """Keep the name that a conversation already has."""
    return current or new


Ids = Annotated[
    dict[str, None], GrowingChannel(join_ids, snapshot_frequency=SNAPSHOT_AFTER), PrivateStateAttr
]


class SummarizationState(AgentState[Any]):
    """State of agents whose context is compacted."""

    # LangGraph takes the last callable of an annotation as the reducer.
    _summarization_event: Annotated[NotRequired[SummarizationEvent | None], PrivateStateAttr, latest_event]
    _summarization_session_id: Annotated[NotRequired[str | None], PrivateStateAttr, first_session]
    _summarized_ids: NotRequired[Ids]
    _clipped_messages: Annotated[NotRequired[dict[str, str | None] | None], PrivateStateAttr, keep_latest]


@valueclass
class CompactionState:
    """The values of these keys in one state."""

    event: SummarizationEvent | None = None
    hidden: Mapping[str, None] = field(default_factory=dict[str, None])
    clips: Clips = field(default_factory=dict[str, str | None])
    session: str | None = None

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> CompactionState:
        """Read them from the state of an agent."""
        return cls(
            state.get(SUMMARIZATION_EVENT_KEY),
            state.get(SUMMARIZED_IDS_KEY) or {},
            state.get(CLIPPED_KEY) or {},
            state.get(SUMMARIZATION_SESSION_ID_KEY),
        )

    @property
    def kept(self) -> Sequence[str]:
        """The messages that the last compaction kept."""
        return self.event.get("kept_ids", ()) if self.event else ()

    @property
    def file_path(self) -> str | None:
        """The part of the archive that the last compaction wrote to."""
        return self.event.get("file_path") if self.event else None

    @property
    def archived(self) -> int:
        """How many of the hidden messages are in the archive."""
        return self.event.get("archived", 0) if self.event else 0


@valueclass
class ShownMessages:
    """What is shown of a list of messages, and its tokens.

    `old` of them were there right after the last compaction.
    """

    messages: list[AnyMessage] = field(default_factory=list[AnyMessage])
    calls_are_shown: bool = True
    old: int = 0
    total: TokenTotal = TokenTotal()


@valueclass
class ContextReader:
    """Works out what requests show; looks at each message once, until something else is hidden or clipped."""

    counter: ContextCounter
    clipping: Clipping
    known: IncrementalCache[ShownMessages] = field(default_factory=IncrementalCache[ShownMessages])

    def show(
        self,
        messages: list[AnyMessage],
        memory: CompactionState,
        *,
        own: Sequence[AnyMessage] | None = None,
        provider: str | None = None,
        specs: Specs | None = None,
    ) -> ShownMessages:
        """Return the summary of the last compaction and every message that it does not replace, in order.

        Messages are hidden by id, so that others that are deleted, added or changed meanwhile stay visible.
        Compactions of older versions recorded no ids; they go by `cutoff_index`. `own` are the messages of
        the state, where the request has others.
        """
        summary = _summary_of(messages if own is None else own, memory)
        if summary is None:
            memory = CompactionState(clips=memory.clips)
        elif not memory.hidden and all(each.id != summary.id for each in messages if each.id):
            messages = messages[memory.event["cutoff_index"] if memory.event else 0 :]

        def begin() -> ShownMessages:
            if summary is None:
                return ShownMessages()
            return ShownMessages([summary], old=1, total=self.counter.add_old(TokenTotal(), [summary]))

        def go_on(before: ShownMessages, new: Sequence[AnyMessage]) -> ShownMessages:
            return self._extend(before, new, memory, provider, specs or specs_by_name())

        # Compared by identity, and a model may spell its provider anew at each call.
        about = (memory.event, memory.hidden or None, memory.clips or None, provider and sys.intern(provider))
        shown = self.known.of(messages, begin, go_on, about)
        # Without anything hidden the request's own list goes on, so that no copy of the request is made.
        return shown if summary or memory.clips else replace(shown, messages=messages)

    def _extend(
        self,
        before: ShownMessages,
        new: Sequence[AnyMessage],
        memory: CompactionState,
        provider: str | None,
        specs: Specs,
    ) -> ShownMessages:
        shown: list[AnyMessage] = []
        calls_are_shown = before.calls_are_shown
        summary_id = memory.event["summary_message"].id if memory.event else None
        kept = frozenset(memory.kept)
        for message in new:
            is_shown = message.id is None or (message.id not in memory.hidden and message.id != summary_id)
            if isinstance(message, ToolMessage):
                # A result that was put in later is hidden with its call: providers refuse one without it.
                is_shown = is_shown and calls_are_shown
            elif isinstance(message, AIMessage):
                calls_are_shown = is_shown
            if is_shown:
                shown.append(_without_bound_reasoning(message) if message.id in kept else message)
        if memory.clips:
            shown = self.clipping.show(shown, memory.clips, specs)
        old, since = list[AnyMessage](), shown
        if kept:
            old = [each for each in shown if each.id is None or each.id in kept]
            since = [each for each in shown if each.id is not None and each.id not in kept]
        total = self.counter.add(self.counter.add_old(before.total, old), since, provider)
        return ShownMessages([*before.messages, *shown], calls_are_shown, before.old + len(old), total)


def _summary_of(own: Sequence[AnyMessage], memory: CompactionState) -> HumanMessage | None:
    """Return the summary to show: none where nothing is left of what there was when it was made."""
    if memory.event is None:
        return None
    if memory.hidden and not any(each.id in memory.hidden or each.id in memory.kept for each in own):
        return None
    return memory.event["summary_message"]


def _without_bound_reasoning(message: AnyMessage) -> AnyMessage:
    """Return a message without reasoning that its provider signed for the context that it was made in."""
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return message
    kinds = reasoning_bound_to_context(message.response_metadata)
    blocks: list[Any] = message.content
    content = [block for block in blocks if block_type(block) not in kinds]
    return message if len(content) == len(blocks) else message.model_copy(update={"content": content})


@valueclass
class Context:
    """One request as it is to be shown, its size, and what the state is to take if it is shown so.

    Of its `tokens`, system prompt and tools have `fixed`; `old` are the tokens and messages that were there
    right after the last compaction.
    """

    specs: Specs
    own: Sequence[AnyMessage]
    state: Mapping[str, Any]
    shown: list[AnyMessage]
    window: int | None
    tokens: int = 0
    fixed: int = 0
    old: tuple[int, int] = (0, 0)
    update: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def memory(self) -> CompactionState:
        """What the state remembers of compactions, with the update."""
        return CompactionState.of(self.state)

    @property
    def load(self) -> Load:
        """Its size, for the policy."""
        return Load(self.tokens, len(self.shown), self.window, *self.old)

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
        clips = {CLIPPED_KEY: {**self.memory.clips, **ids}}
        return replace(self, shown=shown, state={**self.state, **clips}, update={**self.update, **clips})

    def compact(
        self,
        summary: HumanMessage,
        ids: Sequence[str],
        kept: Sequence[AnyMessage],
        path: str | None,
        session: str,
        *,
        archived: bool,
    ) -> Context:
        """Return the context after a compaction, which the state is to remember."""
        memory = self.memory
        hidden = {**memory.hidden, **dict.fromkeys(ids)}
        left = [each.id for each in kept if each.id]
        cutoff = next((at for at, each in enumerate(self.own) if each.id in left), len(self.own))
        event: SummarizationEvent = {
            # Never fewer than last time: of two compactions in one step, the one that hides more is kept.
            "cutoff_index": max(cutoff, memory.event["cutoff_index"] if memory.event else 0),
            "summary_message": summary,
            "file_path": path,
            "kept_ids": left,
            "archived": len(hidden) if archived else memory.archived,
        }
        new: dict[str, Any] = {SUMMARIZATION_EVENT_KEY: event, SUMMARIZATION_SESSION_ID_KEY: session}
        if memory.clips:
            new[CLIPPED_KEY] = {each: clip for each, clip in memory.clips.items() if each in left}
        added = [*self.update.get(SUMMARIZED_IDS_KEY, ()), *ids]
        return replace(
            self,
            shown=[summary, *kept],
            state={**self.state, **new, SUMMARIZED_IDS_KEY: hidden},
            update={**self.update, **new, SUMMARIZED_IDS_KEY: added},
        )


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
