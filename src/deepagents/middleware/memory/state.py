"""What an agent keeps of its memory files: their texts, and why some could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, TypedDict

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr

from deepagents._state.delta_channels import SNAPSHOT_AFTER, GrowingChannel
from deepagents._state.schema import merge_latest

CONTENTS: Final = "memory_contents"
PROBLEMS: Final = "memory_problems"
CHANGED: Final = "_memory_changed"


def merged(known: dict[str, Any] | None, writes: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    """Fold changes file by file; `None` in the place of them all forgets what was known."""
    reset = max((at for at, write in enumerate(writes) if write is None), default=-1)
    later = [write for write in writes[reset + 1 :] if write is not None]
    return merge_latest(None if reset >= 0 else known, later)


Kept = Annotated[dict[str, str], GrowingChannel(merged, snapshot_frequency=SNAPSHOT_AFTER), PrivateStateAttr]


def latest(standing: bool, given: bool) -> bool:
    """Keep the last of several."""
    return given


class MemoryState(AgentState[Any]):
    """The text of each file that has one, a code for each that could not be read, and whether all may have
    changed.
    """

    memory_contents: NotRequired[Kept]
    memory_problems: NotRequired[Kept]
    _memory_changed: NotRequired[Annotated[bool, PrivateStateAttr, latest]]


class MemoryStateUpdate(TypedDict):
    """What `before_agent` writes: the texts that changed, and the codes of files that could not be read."""

    memory_contents: NotRequired[dict[str, str | None]]
    memory_problems: NotRequired[dict[str, str | None]]
    _memory_changed: NotRequired[bool]


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """Return what makes the one mapping of the other; `None` forgets a key."""
    gone: dict[str, str | None] = {each: None for each in before if each not in now}
    return gone | {each: text for each, text in now.items() if before.get(each) != text}
