"""What a grader reads of a conversation: its end and the current request, within bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from deepagents.middleware._history import said_by_a_person

MOST_MESSAGES: Final = 30
MOST_OF_ONE: Final = 4_000
MOST_OF_WORK: Final = 20_000
"""Characters of the current request, and of the answer that is graded."""
MOST_IN_ALL: Final = 60_000
"""Characters, beside those of a current request that stands further back."""

_NOTHING: Final = "(no messages)"


def current_request(messages: Sequence[AnyMessage], known: str | None = None) -> AnyMessage | None:
    """Return the message of that id, else the last that a user wrote: none that a harness put in."""
    request = next((each for each in messages if known and each.id == known), None)
    return request or next((each for each in reversed(messages) if said_by_a_person(each)), None)


def transcript(messages: Sequence[AnyMessage], nonce: str, request_id: str | None = None) -> str:
    """Write down the end of a conversation, and the current request if it stands before that.

    Each part begins with a line that holds the nonce, so that no text in it can pose as another part.
    """
    request = current_request(messages, request_id)
    answer = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)

    def written(message: AnyMessage) -> str:
        most = MOST_OF_WORK if message is request or message is answer else MOST_OF_ONE
        return _cut(_said(message, nonce, is_request=message is request), most, nonce)

    latest = _latest(map(written, reversed(messages[-MOST_MESSAGES:])))
    left_out = messages[: len(messages) - len(latest)]
    lines = latest[::-1]
    if left_out:
        outside = [written(request)] if request and any(each is request for each in left_out) else []
        lines = [*outside, f"[{nonce}] earlier messages are left out", *lines]
    return "\n\n".join(lines) or _NOTHING


def _latest(newest_first: Iterator[str]) -> list[str]:
    taken: list[str] = []
    room = MOST_IN_ALL
    for said in newest_first:
        room -= len(said)
        if room < 0:
            break
        taken.append(said)
    return taken


def _said(message: AnyMessage, nonce: str, *, is_request: bool) -> str:
    text = _text(message)
    if isinstance(message, AIMessage):
        calls = [
            f"[{nonce}] assistant calls {_as_json(call['name'])} {_as_json(call['args'])}"
            for call in message.tool_calls
        ]
        return "\n".join([*([f"[{nonce}] assistant\n{text}"] if text or not calls else []), *calls])
    return f"[{nonce}] {_speaker(message, is_request=is_request)}\n{text}"


def _speaker(message: AnyMessage, *, is_request: bool) -> str:
    if isinstance(message, ToolMessage):
        return f"result of {_as_json(message.name or 'a tool')} ({message.status})"
    if is_request:
        return "user (the current request)"
    source = message.additional_kwargs.get("lc_source")
    return "user" if said_by_a_person(message) else f"harness ({source or message.type})"


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


def _cut(text: str, most: int, nonce: str) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[{nonce}] {len(text) - 2 * half:,} characters left out\n{text[-half:]}"
