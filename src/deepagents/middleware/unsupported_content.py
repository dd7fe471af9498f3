"""Fit a request to what its model takes: replace media by a sentence, refuse tools with the way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from deepagents.errors import ConfigError
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._history import open_turn
from deepagents.middleware._incremental import IncrementalCache
from deepagents.middleware._requests import Request, Response, keeping, with_changes, with_messages
from deepagents.models.compaction import compacts_itself, is_compaction
from deepagents.models.traits import (
    Input,
    can_call_tools,
    may_take_any_file,
    model_label,
    rejects_input,
)

REJECTED_BY: Final = "media_rejected_by"
"""Where `additional_kwargs` hold which models refused a message, and with how many more media it was sent."""

_KIND_OF_TYPE: Final[Mapping[str, Input]] = MappingProxyType(
    {
        "image": "image",
        "image_url": "image",
        "input_image": "image",
        "audio": "audio",
        "input_audio": "audio",
        "video": "video",
        "document": "pdf",
    }
)
_PDF: Final = "application/pdf"
_SENTENCE: Final = "{what}, of type {media_type}, is not shown: {why}"
_TYPELESS: Final = "One part of this message is not shown: its type is not a text."
_COMPACTED: Final = "[Another model's own notes on what came before are not shown.]"
_NOT_TAKEN: Final = "this model does not take it. Go on without it, or find another way to its content."
_REFUSED: Final = (
    "the provider refused a request that held it. Go on without it, or find another way to its content."
)
_REFUSED_AMONG: Final = (
    "the provider refused a request that held it and {others} more, so another may be the cause. "
    "If it matters, {way_out}."
)

Block: TypeAlias = Mapping[str, Any]
Reason: TypeAlias = Callable[[AnyMessage, Block], str | None]


class UnsupportedContentMiddleware(BaseMiddleware):
    """Replace, in requests only, media that the model's profile rejects; ask again without those it refused.

    A model without `bind_tools` is refused with a `ConfigError` before it is asked.
    After a refusal, results of `read_file` are replaced in state too, since the file can be read again;
    a person's message keeps its media, and is marked so that this model does not get them again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._with_blocks = IncrementalCache[list[AnyMessage]]()

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        model = request.model
        if (request.tools or request.response_format) and not can_call_tools(model):
            # Not when the agent is built: middleware may still choose another model for this request.
            raise ConfigError(
                f"the model {model_label(model)!r} cannot call tools (its class {type(model).__name__} has "
                "no bind_tools): give the agent another model, or define bind_tools in that class"
            )
        request = with_messages(request)
        given = self._with_blocks.of(
            request.messages, list, lambda known, new: [*known, *filter(_has_blocks, new)]
        )
        request = _replace(request, given, lambda message, block: _why_unfit(model, message, block))
        try:
            return await inner(handler, request)
        except ModelInvalidRequestError:
            # The model may have refused the media that it has not seen, or else any.
            unseen = filter(_count_media, open_turn(request.messages))
            suspects = list(unseen) or list(filter(_count_media, request.messages))
            if not suspects:
                raise
        others = sum(map(_count_media, suspects)) - 1
        again = _replace(request, suspects, lambda message, block: _why_refused(message, others))
        response = await inner(handler, again)
        return keeping(response, _for_state(request, suspects, others))


def _why_unfit(model: BaseChatModel, message: AnyMessage, block: Block) -> str | None:
    """Return why a model is not to see a block; `None` if it may."""
    if is_compaction(block):
        return None if compacts_itself(model, {}) else _COMPACTED
    others = _refusals(message).get(model_label(model))
    if others is not None:
        return _why_refused(message, others)
    kind = _kind(block)
    in_tool_message = isinstance(message, ToolMessage)
    if kind is None:
        unfit = in_tool_message and not may_take_any_file(model)
    else:
        unfit = rejects_input(model, kind, in_tool_message=in_tool_message)
    return _NOT_TAKEN if unfit else None


def _why_refused(message: AnyMessage, others: int) -> str:
    if others < 1:
        return _REFUSED
    read = message.additional_kwargs.get("read_file_path")
    way_out = "call read_file for one file at a time" if read else "ask for it alone"
    return _REFUSED_AMONG.format(others=others, way_out=way_out)


def _refusals(message: AnyMessage) -> Mapping[str, int]:
    """Return the models that refused this message, each with how many more media it was sent with."""
    marks: Any = message.additional_kwargs.get(REJECTED_BY)
    if not isinstance(marks, dict):
        return {}
    given = cast("dict[str, Any]", marks)
    return {name: others for name, others in given.items() if isinstance(others, int)}


def _replace(request: Request, messages: Sequence[AnyMessage], reason: Reason) -> Request:
    """Return the request with sentences for the media of these messages for which there is a reason."""
    made = {id(each): _replace_in(each, reason) for each in messages}
    changed = {key: new for key, new in made.items() if key != id(new)}
    if not changed:
        return request
    return with_changes(request, messages=[changed.get(id(each), each) for each in request.messages])


def _replace_in(message: AnyMessage, reason: Reason) -> AnyMessage:
    content: list[Any] = []
    for block in cast("list[Any]", message.content):
        text = _sentence(message, block, reason)
        shown: Any = block if text is None else {"type": "text", "text": text}
        # The frames of one video, say, would all become the same sentence.
        if text is None or shown not in content:
            content.append(shown)
    return message if content == message.content else message.model_copy(update={"content": content})


def _sentence(message: AnyMessage, block: Any, reason: Reason) -> str | None:
    """Return what to show instead of a block; `None` for one that is shown."""
    if not isinstance(block, dict):
        return None
    block = cast("dict[str, Any]", block)
    if not isinstance(block.get("type", ""), str):
        return _TYPELESS
    why = reason(message, block) if _is_media(block) or is_compaction(block) else None
    if why is None or why == _COMPACTED:
        return why
    path: Any = message.additional_kwargs.get("read_file_path") or block.get("filename")
    kind = _kind(block) or "file"
    what = f"The {kind} {path!r}" if path else f"One {kind} of this message"
    return _SENTENCE.format(what=what, media_type=_media_type(block) or "unknown", why=why)


def _is_media(block: Any) -> bool:
    kind: Any = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and (kind == "file" or kind in _KIND_OF_TYPE)


def _kind(block: Block) -> Input | None:
    if block.get("type") == "file":
        name = f"{block.get('filename') or ''}".lower()
        return "pdf" if _media_type(block) == _PDF or name.endswith(".pdf") else None
    return _KIND_OF_TYPE.get(block.get("type", ""))


def _media_type(block: Block) -> str | None:
    source: Any = block.get("source")
    nested = cast("dict[str, Any]", source).get("media_type") if isinstance(source, dict) else None
    return block.get("mime_type") or nested


def _has_blocks(message: AnyMessage) -> bool:
    if not isinstance(message.content, list):
        return False
    return isinstance(message, (HumanMessage, ToolMessage)) or any(map(is_compaction, message.content))


def _count_media(message: AnyMessage) -> int:
    return sum(map(_is_media, message.content)) if _has_blocks(message) else 0


def _for_state(request: Request, refused: Sequence[AnyMessage], others: int) -> list[AnyMessage]:
    """Return what state is to hold instead, made of what state holds: a request may show less."""
    ids = {message.id for message in refused if message.id}
    messages: Sequence[AnyMessage] = cast("dict[str, Any]", request.state).get("messages", ())
    name = model_label(request.model)
    return [_mark(message, name, others) for message in messages if message.id in ids]


def _mark(message: AnyMessage, model: str, others: int) -> AnyMessage:
    if message.additional_kwargs.get("read_file_path"):
        return _replace_in(message, lambda message, block: _why_refused(message, others))
    marks = {**message.additional_kwargs, REJECTED_BY: {**_refusals(message), model: others}}
    return message.model_copy(update={"additional_kwargs": marks})
