"""A conversation as a model is to see it, and what the state remembers of how it came to be shown so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from deepagents.middleware._history import shows_media
from deepagents.middleware.summarization.counting import Past
from deepagents.middleware.summarization.overflow import Lesson
from deepagents.middleware.summarization.policy import Load, Piece, PieceKind, Since
from deepagents.middleware.summarization.state import (
    CLIPPED_KEY,
    SUMMARIZATION_EVENT_KEY,
    SUMMARIZATION_SESSION_ID_KEY,
    SUMMARIZED_IDS_KEY,
    Clipped,
    SummarizationEvent,
)
from deepagents.middleware.summarization.summary import is_summary
from deepagents.models.traits import input_window, model_provider


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the messages of a request: the model that gets them, its prompt and its tools."""

    model: BaseChatModel
    system: SystemMessage | None = None
    tools: Sequence[Any] = ()

    @property
    def provider(self) -> str | None:
        """The provider whose reports count."""
        return model_provider(self.model)

    @property
    def window(self) -> int | None:
        """How many tokens the model takes."""
        return input_window(self.model)


@dataclass(frozen=True, slots=True)
class Record:
    """What an agent remembers: its last compaction, what that hides, and what is shown clipped."""

    event: SummarizationEvent | None = None
    hidden: Mapping[str, None] = field(default_factory=dict[str, None])
    clipped: Clipped | None = None
    session: str = ""

    @classmethod
    def of(cls, state: Mapping[str, Any], session: str) -> Record:
        """Read it from the state of an agent; `session` is the name of its conversation."""
        return cls(
            state.get(SUMMARIZATION_EVENT_KEY),
            state.get(SUMMARIZED_IDS_KEY) or {},
            state.get(CLIPPED_KEY),
            session,
        )

    @property
    def clips(self) -> Mapping[str, str | None]:
        """The messages that are shown clipped."""
        return self.clipped["ids"] if self.clipped else {}

    @property
    def as_state(self) -> dict[str, Any]:
        """It as the state of an agent holds it."""
        return {
            SUMMARIZATION_EVENT_KEY: self.event,
            SUMMARIZED_IDS_KEY: self.hidden,
            CLIPPED_KEY: self.clipped,
            SUMMARIZATION_SESSION_ID_KEY: self.session,
        }

    @property
    def past(self) -> Past:
        """What there was when the context last became another one."""
        changed = self.clipped or self.event
        if not changed:
            return Past()
        return Past(changed.get("after_id"), changed.get("answers_before") or ())

    @property
    def since(self) -> Since | None:
        """How large the context was right after the last compaction."""
        event = self.event
        if event is None or "tokens_after" not in event or "messages_after" not in event:
            return None
        return Since(event["tokens_after"], event["messages_after"])


@dataclass(frozen=True, slots=True)
class Context:
    """The messages to show, the state's own behind them, and what the state is to take if they are shown."""

    frame: Frame
    originals: Sequence[AnyMessage]
    shown: list[AnyMessage]
    memory: Record
    window: int | None
    tokens: int = 0
    update: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lesson: Lesson = Lesson()

    @property
    def load(self) -> Load:
        """Its size, for the policy."""
        return Load(self.tokens, len(self.shown), self.window)

    @property
    def since(self) -> Since | None:
        """Its size right after the compaction whose summary it shows."""
        return self.memory.since if self.shown and is_summary(self.shown[0]) else None

    def parted(self, at: int) -> tuple[list[AnyMessage], list[AnyMessage]]:
        """Part the messages into those that go, and those that stay: from a place on, and passing ones."""
        passing = self.passing
        goes = [each for place, each in enumerate(self.shown[:at]) if place not in passing]
        stays = [each for place, each in enumerate(self.shown) if place >= at or place in passing]
        return goes, stays

    @property
    def session(self) -> str:
        """The name of the conversation where it has no thread."""
        return self.memory.session

    @property
    def newest(self) -> str | None:
        """The id of the newest message of the state."""
        return next((each.id for each in reversed(self.originals) if each.id), None)

    @property
    def passing(self) -> frozenset[int]:
        """The places of messages that only this request has, and that no summary is to stand for."""
        own = {each.id for each in self.originals if each.id}
        found: set[int] = set()
        with_call = False
        for at, message in enumerate(self.shown):
            if not isinstance(message, ToolMessage):
                is_passing = message.id not in own and not is_summary(message)
                with_call = is_passing and isinstance(message, AIMessage)
            else:
                is_passing = with_call
            if is_passing:
                found.add(at)
        return frozenset(found)

    def pieces(self, sizes: Sequence[int]) -> list[Piece]:
        """Describe the messages for the policy, with their sizes."""
        return [_piece(each, tokens) for each, tokens in zip(self.shown, sizes, strict=True)]

    def clipping(self, ids: Mapping[str, str | None], shown: list[AnyMessage]) -> Context:
        """Return the context with more messages clipped, which the state is to remember."""
        clipped: Clipped = {
            "ids": {**self.memory.clips, **ids},
            "after_id": self.newest,
            "answers_before": answers(shown),
        }
        memory = replace(self.memory, clipped=clipped)
        return replace(self, shown=shown, memory=memory, update={**self.update, CLIPPED_KEY: clipped})

    def after(self, event: SummarizationEvent, ids: Sequence[str], shown: list[AnyMessage]) -> Context:
        """Return the context after a compaction, which the state is to remember."""
        earlier: Sequence[str] = self.update.get(SUMMARIZED_IDS_KEY, ())
        session = self.session
        update: dict[str, Any] = {
            SUMMARIZATION_EVENT_KEY: event,
            SUMMARIZED_IDS_KEY: [*earlier, *ids],
            SUMMARIZATION_SESSION_ID_KEY: session,
        }
        hidden = {**self.memory.hidden, **dict.fromkeys(ids)}
        clipped = self.memory.clipped
        if clipped is not None:
            kept = {each.id for each in shown}
            still = {each: path for each, path in clipped["ids"].items() if each in kept}
            clipped = Clipped(
                ids=still, after_id=event.get("after_id"), answers_before=event.get("answers_before", [])
            )
            update[CLIPPED_KEY] = clipped
        memory = Record(event, hidden, clipped, session)
        return replace(self, shown=shown, memory=memory, update={**self.update, **update})


def answers(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the ids of the model's messages."""
    return [each.id for each in messages if isinstance(each, AIMessage) and each.id]


def _piece(message: AnyMessage, tokens: int) -> Piece:
    if isinstance(message, AIMessage):
        made = [*message.tool_calls, *message.invalid_tool_calls]
        return Piece("model", tokens, calls=tuple(call["id"] for call in made if call["id"]))
    if isinstance(message, ToolMessage):
        return Piece("tool", tokens, answers=message.tool_call_id)
    return Piece(_kind(message), tokens)


def _kind(message: AnyMessage) -> PieceKind:
    if is_summary(message):
        return "summary"
    return "human" if isinstance(message, HumanMessage) and not shows_media(message) else "other"
