"""What approval keeps in the state of an agent."""

from __future__ import annotations

from typing import Annotated, Any, Final, NotRequired

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr

from deepagents._state.delta_channels import SNAPSHOT_AFTER, GrowingChannel
from deepagents._state.schema import NOT_SHARED, merge_latest

EDITED: Final = "hitl_edited_tool_calls"
"""State key of LangChain's approval: by the id of a call, what a person replaced it by."""
HELD: Final = "held_calls"
"""State key: the ids of the calls of the last turn while a person is to decide about one before any runs."""
SEEN: Final = "versions_seen"
"""State key: by path, what the calls of the last turn would change, as it was when a person was asked."""
REMEMBERED: Final = "remembered_decisions"
"""State key: by its key, each decision that a person had remembered in the thread."""


class ApprovalState(AgentState[Any]):
    """State of an agent whose calls may wait for a person."""

    hitl_edited_tool_calls: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    held_calls: NotRequired[Annotated[list[str] | None, PrivateStateAttr, NOT_SHARED]]
    versions_seen: NotRequired[Annotated[dict[str, str], PrivateStateAttr, NOT_SHARED]]
    remembered_decisions: NotRequired[
        Annotated[
            dict[str, Any],
            GrowingChannel(merge_latest, snapshot_frequency=SNAPSHOT_AFTER),
            PrivateStateAttr,
            NOT_SHARED,
        ]
    ]
