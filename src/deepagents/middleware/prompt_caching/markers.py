"""Set and remove the marks that tell a provider where a prompt may be cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage

from deepagents.middleware._base import Request, with_changes

MARK = "cache_control"


class OwnMark(dict[str, str]):
    """A mark that the library set itself, and may move or take back."""


def is_from(model: BaseChatModel, package: str, kind: str | None = None) -> bool:
    """Return whether a model's class, or one that it derives from, is of a package, by this name there."""
    return _derives_from(model.__class__, package, kind)


@lru_cache(maxsize=256)
def _derives_from(model: type, package: str, kind: str | None) -> bool:
    return any(
        each.__module__.partition(".")[0] == package and kind in (None, each.__name__)
        for each in model.__mro__
    )


def is_chat_anthropic(model: BaseChatModel) -> bool:
    """Return whether a model is a `ChatAnthropic`, without importing it."""
    return is_from(model, "langchain_anthropic", "ChatAnthropic")


def blocks_of(message: SystemMessage | None) -> list[dict[str, Any]]:
    """Return the blocks of a system message, text as a block too."""
    if message is None or not message.content:
        return []
    content: Sequence[Any] = [message.content] if isinstance(message.content, str) else message.content
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]


def with_blocks(request: Request, blocks: Sequence[Mapping[str, Any]]) -> Request:
    """Return the request with these blocks in its system message."""
    message = cast(SystemMessage, request.system_message)
    return with_changes(request, system_message=message.model_copy(update={"content": list(blocks)}))


def with_own_mark(request: Request) -> Request:
    """Mark the last block of the system message, unless it has a mark."""
    *others, last = blocks_of(request.system_message) or [{MARK: None}]
    if MARK in last:
        return request
    return with_blocks(request, [*others, {**last, MARK: OwnMark(type="ephemeral")}])


def without_own_marks(request: Request) -> Request:
    """Return the request without the marks that the library set in its system message."""
    blocks = blocks_of(request.system_message)
    if not any(isinstance(block.get(MARK), OwnMark) for block in blocks):
        return request
    return with_blocks(request, [remove_mark(each) if _is_own(each) else each for each in blocks])


def remove_mark(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block without its mark."""
    return {key: value for key, value in block.items() if key != MARK}


def _is_own(block: Mapping[str, Any]) -> bool:
    return isinstance(block.get(MARK), OwnMark)
