"""What a deep agent keeps between steps, and which keys stay its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Required, get_args, get_type_hints

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage

from deepagents._growing import messages_channel


def merge_latest(known: dict[str, Any] | None, writes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Fold mappings key by key, the latest last; `None` forgets a key."""
    merged = dict(known or {})
    for write in writes:
        merged.update(write)
    return {key: value for key, value in merged.items() if value is not None}


class DeepAgentState(AgentState[Any]):
    """An agent's state: messages are kept as deltas, so that checkpoints grow with what is new."""

    messages: Required[Annotated[list[AnyMessage], messages_channel()]]


@cache
def private_keys(schema: type) -> frozenset[str]:
    """Name the fields of a state schema that are marked private to the agent that declares them."""
    hints = get_type_hints(schema, include_extras=True)
    return frozenset(key for key, hint in hints.items() if _is_marked(hint))


def _is_marked(hint: Any) -> bool:
    marks = getattr(hint, "__metadata__", ())
    return PrivateStateAttr in marks or any(_is_marked(inner) for inner in get_args(hint))
