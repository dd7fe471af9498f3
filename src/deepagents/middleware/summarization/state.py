"""What an agent remembers of its compactions: private keys, positions by message id."""

from __future__ import annotations

from collections.abc import Sequence
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
    """The last compaction: which messages a summary stands for, and where they are kept whole.

    `cutoff_index` and `created_at_index` count raw messages of the state, for readers of older versions; what
    is hidden is decided by id (`_summarized_ids`). `after_id` is the newest message when it was made, and
    `answers_before` are the model's messages that it kept: what a provider reported with these counts another
    context. `tokens_after` and `messages_after` say how large the context was right after it. `archived` says
    how many of the hidden messages stand in the archive, where not all of them do.
    """

    cutoff_index: int
    summary_message: HumanMessage
    file_path: str | None
    created_at_index: NotRequired[int]
    after_id: NotRequired[str | None]
    answers_before: NotRequired[list[str]]
    archived: NotRequired[int]
    tokens_after: NotRequired[int]
    messages_after: NotRequired[int]


class Clipped(TypedDict):
    """The messages that requests show clipped; the newest message, and the answers, when that last changed.

    `ids` maps the id of a message to the file that holds what was clipped, `None` where its calls name it.
    """

    ids: dict[str, str | None]
    after_id: str | None
    answers_before: NotRequired[list[str]]


def latest_event(
    standing: SummarizationEvent | None, given: SummarizationEvent | None
) -> SummarizationEvent | None:
    """Keep, of two compactions, the one that hides more; `None` forgets."""
    if standing is None or given is None:
        return given
    return given if given["cutoff_index"] >= standing["cutoff_index"] else standing


def joined_ids(known: dict[str, None] | None, writes: Sequence[Sequence[str]]) -> dict[str, None]:
    """Fold lists of ids into the ids that are known, in their order."""
    return {**(known or {}), **dict.fromkeys(each for write in writes for each in write)}


def first_session(standing: str | None, given: str | None) -> str | None:
    """Keep the name that a conversation has."""
    return standing or given


def latest_clipped(standing: Clipped | None, given: Clipped | None) -> Clipped | None:
    """Keep the last of several."""
    return given


Ids = Annotated[
    dict[str, None], GrowingChannel(joined_ids, snapshot_frequency=SNAPSHOT_AFTER), PrivateStateAttr
]


class SummarizationState(AgentState[Any]):
    """State of agents whose context is compacted. LangGraph takes as a reducer what stands last."""

    _summarization_event: Annotated[NotRequired[SummarizationEvent | None], PrivateStateAttr, latest_event]
    _summarization_session_id: Annotated[NotRequired[str | None], PrivateStateAttr, first_session]
    _summarized_ids: NotRequired[Ids]
    _clipped_messages: Annotated[NotRequired[Clipped | None], PrivateStateAttr, latest_clipped]
