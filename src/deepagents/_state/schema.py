"""Define the state of a deep agent, and which state keys it shares with subagents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType, new_class
from typing import Annotated, Any, Final, Required, get_args, get_type_hints

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage
from typing_extensions import is_typeddict

from deepagents._deprecation import warn_caller
from deepagents._state.channels import InheritedMessagesChannel, MessagesChannel, messages_channel
from deepagents._values import valueclass


def merge_latest(known: dict[str, Any] | None, writes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Fold mappings key by key, the latest last; `None` forgets a key."""
    merged = dict(known or {})
    for write in writes:
        merged.update(write)
    return {key: value for key, value in merged.items() if value is not None}


def merge_unique(known: Any, writes: Sequence[Any]) -> list[str]:
    """Fold lists of texts into one, each text once."""
    return list(dict.fromkeys([*(known or ()), *(each for write in writes for each in write or ())]))


def keep_latest(known: Any, given: Any) -> Any:
    """Return the later of two writes."""
    return given


class DeepAgentState(AgentState[Any]):
    """An agent's state: messages are kept as deltas, so that checkpoints grow with what is new."""

    messages: Required[Annotated[list[AnyMessage], messages_channel()]]


@cache
def continuing(schema: type) -> type:
    """Return a state schema whose messages may begin with those of another agent, without saving them again.

    One that keeps messages in a way of its own stays as it is.
    """
    kept = get_type_hints(schema, include_extras=True).get("messages") if is_typeddict(schema) else None
    channel = next((each for each in _marks(kept) if isinstance(each, MessagesChannel)), None)
    if channel is None:
        return schema
    messages = Required[Annotated[list[AnyMessage], InheritedMessagesChannel(channel.reducer)]]
    annotations = {"messages": messages}
    return new_class("Continuing", (schema,), {}, lambda body: body.update(__annotations__=annotations))


def _marks(hint: Any) -> Sequence[Any]:
    own: Sequence[Any] = getattr(hint, "__metadata__", ())
    return own or [mark for inner in get_args(hint) for mark in _marks(inner)]


@valueclass
class Sharing:
    """Whether a state key goes down to isolated subagents and to forks, and comes back from either.

    A feature says so on its state schema: `key: Annotated[type, Sharing(...)]`.
    """

    down: bool = True
    forks: bool = True
    back: bool = True

    def and_also(self, other: Sharing) -> Sharing:
        """Share what both share."""
        return Sharing(self.down and other.down, self.forks and other.forks, self.back and other.back)


SHARED: Final = Sharing()
FORKS_ONLY: Final = Sharing(down=False, back=False)
"""A fork gets it, and no other agent does. A private key is shared so."""
NOT_SHARED: Final = Sharing(down=False, forks=False, back=False)

COMMON_KEYS: Final[Mapping[str, Sharing]] = MappingProxyType(
    {"messages": NOT_SHARED, "structured_response": NOT_SHARED, "jump_to": NOT_SHARED, "todos": FORKS_ONLY}
)
"""The keys that LangChain's own schemas declare. Messages have ways of their own, down and back."""


def collect_sharing(schemas: Iterable[type]) -> dict[str, Sharing]:
    """Make the table of state keys that are not simply shared; of several declarations all hold."""
    table = dict(COMMON_KEYS)
    for schema in schemas:
        for key, sharing in _find_declared(schema).items():
            table[key] = table.get(key, sharing).and_also(sharing)
    return table


@cache
def _find_declared(schema: type) -> Mapping[str, Sharing]:
    try:
        hints = get_type_hints(schema, include_extras=True)
    except (NameError, TypeError) as error:
        # Annotations of a caller may name what only a type checker imports.
        warn_caller(f"cannot tell which keys of {schema!r} are private, so all of them are shared: {error}")
        return {}
    found = {key: _sharing(hint) for key, hint in hints.items() if key not in COMMON_KEYS}
    return {key: sharing for key, sharing in found.items() if sharing is not None}


def _sharing(hint: Any) -> Sharing | None:
    marks: Sequence[Any] = getattr(hint, "__metadata__", ())
    declared = next((mark for mark in marks if isinstance(mark, Sharing)), None)
    if declared is not None:
        return declared
    inside = next((found for inner in get_args(hint) if (found := _sharing(inner)) is not None), None)
    return inside or (FORKS_ONLY if PrivateStateAttr in marks else None)
