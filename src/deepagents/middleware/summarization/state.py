"""What an agent remembers of its compactions: private state keys, with messages named by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NotRequired

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import HumanMessage
from typing_extensions import TypedDict

from deepagents._state.delta_channels import SNAPSHOT_AFTER, GrowingChannel

SUMMARIZATION_EVENT_KEY: Final = "_summarization_event"
SUMMARIZATION_SESSION_ID_KEY: Final = "_summarization_session_id"
SUMMARIZED_IDS_KEY: Final = "_summarized_ids"
CLIPPED_KEY: Final = "_clipped_messages"


class SummarizationEvent(TypedDict):
    """The last compaction: which messages a summary replaces, and where they are kept whole.

    `cutoff_index` counts raw messages of the state, for readers of older versions; what is hidden is decided
    by id (`_summarized_ids`). `after_id` is the newest message when it was made. `answers_before` are the
    model's messages that it kept: what a provider reported with these counts another context. `archived`
    says how many of the hidden messages are in the archive, where not all of them are. `tokens_after` and
    `messages_after` say how large the context was right after it.
    """

    cutoff_index: int
    summary_message: HumanMessage
    file_path: str | None
    after_id: NotRequired[str | None]
    answers_before: NotRequired[list[str]]
    archived: NotRequired[int]
    tokens_after: NotRequired[int]
    messages_after: NotRequired[int]


class Clipped(TypedDict):
    """The messages that requests show clipped, and the model's messages when that last changed.

    `ids` maps the id of a message to the file that holds what was clipped; to `None` where its calls name it.
    """

    ids: dict[str, str | None]
    answers_before: NotRequired[list[str]]


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


def latest_clipped(current: Clipped | None, new: Clipped | None) -> Clipped | None:
    """Keep the last of several."""
    return new


Ids = Annotated[
    dict[str, None], GrowingChannel(join_ids, snapshot_frequency=SNAPSHOT_AFTER), PrivateStateAttr
]


class SummarizationState(AgentState[Any]):
    """State of agents whose context is compacted."""

    # LangGraph takes the last callable of an annotation as the reducer.
    _summarization_event: Annotated[NotRequired[SummarizationEvent | None], PrivateStateAttr, latest_event]
    _summarization_session_id: Annotated[NotRequired[str | None], PrivateStateAttr, first_session]
    _summarized_ids: NotRequired[Ids]
    _clipped_messages: Annotated[NotRequired[Clipped | None], PrivateStateAttr, latest_clipped]


@dataclass(frozen=True, slots=True)
class CompactionState:
    """The values of these keys in one state."""

    event: SummarizationEvent | None = None
    hidden: Mapping[str, None] = field(default_factory=dict[str, None])
    clipped: Clipped | None = None
    session: str | None = None

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> CompactionState:
        """Read them from the state of an agent."""
        return cls(
            state.get(SUMMARIZATION_EVENT_KEY),
            state.get(SUMMARIZED_IDS_KEY) or {},
            state.get(CLIPPED_KEY),
            state.get(SUMMARIZATION_SESSION_ID_KEY),
        )

    def as_state(self) -> dict[str, Any]:
        """Return them as the state of an agent holds them."""
        return {
            SUMMARIZATION_EVENT_KEY: self.event,
            SUMMARIZED_IDS_KEY: self.hidden,
            CLIPPED_KEY: self.clipped,
            SUMMARIZATION_SESSION_ID_KEY: self.session,
        }

    @property
    def clips(self) -> Mapping[str, str | None]:
        """The messages that are shown clipped, by id."""
        return self.clipped["ids"] if self.clipped else {}

    @property
    def outdated_answers(self) -> Sequence[str]:
        """The model's messages from before the context last became another one."""
        changed = self.clipped or self.event
        return (changed.get("answers_before") or ()) if changed else ()

    @property
    def archived(self) -> int:
        """How many of the hidden messages are in the archive."""
        event = self.event
        return event.get("archived", len(self.hidden) if event.get("file_path") else 0) if event else 0
