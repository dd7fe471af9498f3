"""Small things that earlier versions had beside their middleware, in terms of what there is today."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from deepagents._state.schema import COMMON_KEYS, shared_by
from deepagents.middleware._offload import join_content, split_content
from deepagents.middleware.prompt_caching.markers import is_chat_anthropic
from deepagents.models.traits import is_chat_model


def is_anthropic_chat_model(given: object) -> bool:
    """Tell whether something is a `ChatAnthropic`, without importing it."""
    return is_chat_model(given) and is_chat_anthropic(given)


def private_state_field_names(*schemas: type) -> frozenset[str]:
    """Name the fields of schemas that no subagent gets; of a schema that cannot be read, none."""
    table = shared_by(schemas)
    own = {key for key, sharing in table.items() if key not in COMMON_KEYS and not sharing.down}
    jumps = (
        {"jump_to"}
        if any("jump_to" in vars(each).get("__annotations__", ()) for each in schemas)
        else set[str]()
    )
    return frozenset(own | jumps)


def text_of_message(message: BaseMessage) -> str:
    """Join the texts of a message."""
    return split_content(message.content)[0]


def evicted_content(message: ToolMessage, replacement: str) -> str | list[Any]:
    """Return the content of a message with other words in the place of its texts."""
    return join_content(replacement, split_content(message.content)[1])
