"""What a subagent's result says to its parent, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from pydantic import BaseModel
from pydantic_core import to_json

from deepagents.errors import ConfigError


def report(name: str, result: Any, known: Sequence[BaseMessage] = ()) -> str:
    """Return the structured response as JSON if there is one, else the last text that the subagent wrote.

    `known` are messages that it was given, which are none of its own.

    Raises:
        ConfigError: when the result is no state, or has no `messages`.
    """
    if not isinstance(result, Mapping):
        raise ConfigError(
            f"CompiledSubAgent must return a state, such as {{'messages': [...]}}; {name!r} "
            f"returned {result!r}"
        )
    return _report(name, cast("Mapping[str, Any]", result), {each.id for each in known if each.id})


def _report(name: str, result: Mapping[str, Any], known: set[str]) -> str:
    structured = result.get("structured_response")
    if structured is not None:
        return _as_json(structured)
    if "messages" not in result:
        raise ConfigError(
            f"CompiledSubAgent must return a state containing a 'messages' key; {name!r} returned "
            f"{sorted(result)!r}"
        )
    said = result["messages"]
    if isinstance(said, str) and said.strip():
        return said.rstrip()
    for message in reversed(convert_to_messages(said)):
        if isinstance(message, AIMessage) and message.id not in known and message.text.strip():
            return message.text.rstrip()
    return f"The subagent {name!r} finished without writing an answer."


def _as_json(value: Any) -> str:
    """Write a value as JSON, with what JSON has no form for as text, or as Python shows it."""
    with suppress(Exception):
        return _plain_json(value)
    with suppress(Exception):
        return to_json(value, serialize_unknown=True).decode()
    return repr(value)


def _plain_json(value: Any) -> str:
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return json.dumps(plain, default=str, ensure_ascii=False)
