"""What a grader reads of a conversation: its end and the current request, within bounds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deepagents.middleware._turns import shows_media

MOST_MESSAGES: Final = 30
MOST_OF_ONE: Final = 4_000
MOST_IN_ALL: Final = 60_000
"""Characters, of which the current request may take `MOST_OF_ONE` more."""

_NOTHING: Final = "(no messages)"
_LEFT_OUT: Final = "(earlier messages left out)"
_CUT: Final = "...(truncated)"


def current_request(messages: Sequence[AnyMessage]) -> AnyMessage | None:
    """Return the last message that a user wrote: none that a harness put in under that role."""
    return next((each for each in reversed(messages) if _is_users(each)), None)


def transcript(messages: Sequence[AnyMessage]) -> str:
    """Write down the end of a conversation, and the current request if it stands before that."""
    latest: list[str] = []
    room = MOST_IN_ALL
    for message in reversed(messages[-MOST_MESSAGES:]):
        said = _cut(_said(message))
        room -= len(said)
        if room < 0:
            break
        latest.append(said)
    left_out = len(messages) - len(latest)
    lines = latest[::-1]
    if left_out:
        request = current_request(messages)
        outside = request is not None and any(each is request for each in messages[:left_out])
        lines = [*([_cut(_said(request))] if request and outside else []), _LEFT_OUT, *lines]
    return "\n\n".join(lines) or _NOTHING


def _is_users(message: AnyMessage) -> bool:
    return (
        isinstance(message, HumanMessage)
        and not message.additional_kwargs.get("lc_source")
        and not shows_media(message)
    )


def _said(message: AnyMessage) -> str:
    text = _text(message)
    if isinstance(message, AIMessage):
        calls = [f"calls {call['name']} {_as_json(call['args'])}" for call in message.tool_calls]
        return "\n".join(["assistant:", *filter(None, [text]), *calls])
    if isinstance(message, ToolMessage):
        return f"result of {message.name or 'a tool'} ({message.status}):\n{text}"
    source = message.additional_kwargs.get("lc_source")
    who = "user" if _is_users(message) else f"harness ({source or message.type})"
    return f"{who}:\n{text}"


def _text(message: AnyMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(_block(each) for each in cast("list[Any]", message.content))


def _block(block: Any) -> str:
    if isinstance(block, str):
        return block
    kind = str(block.get("type", "unknown"))
    return str(block.get("text", "")) if kind == "text" else f"[{kind}]"


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_OF_ONE else text[:MOST_OF_ONE] + _CUT
