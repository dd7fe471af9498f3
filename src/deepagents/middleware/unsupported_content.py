"""Media that a model does not take are told to it in a sentence, instead of ending the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from deepagents.middleware._base import BaseMiddleware, Request, Response, inner, keeping, with_messages
from deepagents.middleware._history import open_turn
from deepagents.models.traits import Input, may_take_any_file, model_identifier, rejects_input

REJECTED_BY: Final = "media_rejected_by"
_KINDS: Final[Mapping[str, Input]] = MappingProxyType(
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
_PDF = "application/pdf"
_SENTENCE = "{what}, of type {media_type}, is not shown: {why}"
_TYPELESS = "One part of this message is not shown: its type is not a text."
_NOT_TAKEN = "this model does not take it. Go on without it, or find another way to its content."
_REFUSED = (
    "the provider refused a request that held it. Go on without it, or find another way to its content."
)
_REFUSED_AMONG = (
    "the provider refused a request that held it and {others} more, so another may be the cause. "
    "If it matters, {way_out}."
)

Reason = Callable[[AnyMessage, Mapping[str, Any]], str | None]


class UnsupportedContentMiddleware(BaseMiddleware):
    """Replace, in requests only, media that the model's profile rejects; and try again without those that it
    refused.

    After a refusal, results of `read_file` are replaced in state too, since the file can be read again;
    a person's message keeps its media, and is marked so that this model does not get them again.
    """

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        model = request.model
        request = with_messages(request)
        request = _without(request, request.messages, lambda message, block: _unfit(model, message, block))
        try:
            return await inner(handler, request)
        except ModelInvalidRequestError:
            refused = _refused(request.messages)
            if not refused:
                raise
        others = sum(map(_media_in, refused)) - 1
        again = _without(request, refused, lambda message, block: _refusal(message, others))
        response = await inner(handler, again)
        return keeping(response, _kept(request, refused, others))


def _unfit(model: BaseChatModel, message: AnyMessage, block: Mapping[str, Any]) -> str | None:
    """Say why a model is not to see a block, if it is not."""
    others = _marks(message).get(_name(model))
    if others is not None:
        return _refusal(message, others)
    kind = _kind(block)
    in_tool_message = isinstance(message, ToolMessage)
    if kind is None:
        unfit = in_tool_message and not may_take_any_file(model)
    else:
        unfit = rejects_input(model, kind, in_tool_message=in_tool_message)
    return _NOT_TAKEN if unfit else None


def _refusal(message: AnyMessage, others: int) -> str:
    if others < 1:
        return _REFUSED
    read = message.additional_kwargs.get("read_file_path")
    way_out = "call read_file for one file at a time" if read else "ask for it alone"
    return _REFUSED_AMONG.format(others=others, way_out=way_out)


def _marks(message: AnyMessage) -> Mapping[str, int]:
    """Return by name the models whose provider refused this message, and how many more media it was with."""
    marks: Any = message.additional_kwargs.get(REJECTED_BY)
    if not isinstance(marks, dict):
        return {}
    given = cast("dict[str, Any]", marks)
    return {name: others for name, others in given.items() if isinstance(others, int)}


def _without(request: Request, messages: Sequence[AnyMessage], reason: Reason) -> Request:
    """Return the request with sentences for what is rejected in some of its messages."""
    changed: dict[int, AnyMessage] = {}
    for message in messages:
        if isinstance(message.content, list) and isinstance(message, (HumanMessage, ToolMessage)):
            told = _told(message, reason)
            if told is not message:
                changed[id(message)] = told
    if not changed:
        return request
    return request.override(messages=[changed.get(id(each), each) for each in request.messages])


def _told(message: AnyMessage, reason: Reason) -> AnyMessage:
    content: list[Any] = []
    for block in cast("list[Any]", message.content):
        text = _TYPELESS if _is_typeless(block) else None
        if _is_media(block) and (why := reason(message, block)) is not None:
            text = _sentence(message, block, why)
        if text is None:
            content.append(block)
            continue
        sentence = {"type": "text", "text": text}
        if sentence not in content:
            content.append(sentence)
    return message if content == message.content else message.model_copy(update={"content": content})


def _sentence(message: AnyMessage, block: Mapping[str, Any], why: str) -> str:
    path: Any = message.additional_kwargs.get("read_file_path") or block.get("filename")
    kind = _kind(block) or "file"
    what = f"The {kind} {path!r}" if path else f"One {kind} of this message"
    return _SENTENCE.format(what=what, media_type=_media_type(block) or "unknown", why=why)


def _is_media(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    kind = cast("dict[str, Any]", block).get("type")
    return isinstance(kind, str) and (kind == "file" or kind in _KINDS)


def _is_typeless(block: Any) -> bool:
    """Tell whether the type of a block is no text, which nothing that reads requests can bear."""
    return isinstance(block, dict) and not isinstance(cast("dict[str, Any]", block).get("type", ""), str)


def _kind(block: Mapping[str, Any]) -> Input | None:
    if block.get("type") == "file":
        named = f"{block.get('filename') or ''}".lower()
        return "pdf" if _media_type(block) == _PDF or named.endswith(".pdf") else None
    return _KINDS.get(block.get("type", ""))


def _media_type(block: Mapping[str, Any]) -> str | None:
    source: Any = block.get("source")
    nested = cast("dict[str, Any]", source).get("media_type") if isinstance(source, dict) else None
    return block.get("mime_type") or nested


def _refused(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages whose media the model may have refused: those it has not seen, or else all."""
    return list(filter(_media_in, open_turn(messages))) or list(filter(_media_in, messages))


def _media_in(message: AnyMessage) -> int:
    """Count the media of a message that are the model's to see."""
    if not isinstance(message, (HumanMessage, ToolMessage)) or isinstance(message.content, str):
        return 0
    return sum(map(_is_media, message.content))


def _kept(request: Request, refused: Sequence[AnyMessage], others: int) -> list[AnyMessage]:
    """Return what state is to hold instead, made of what state holds: a request may show less."""
    ids = {message.id for message in refused if message.id}
    standing: Sequence[AnyMessage] = cast("dict[str, Any]", request.state).get("messages", ())
    return [_marked(message, _name(request.model), others) for message in standing if message.id in ids]


def _marked(message: AnyMessage, model: str, others: int) -> AnyMessage:
    if message.additional_kwargs.get("read_file_path"):
        return _told(message, lambda message, block: _refusal(message, others))
    marks = {**message.additional_kwargs, REJECTED_BY: {**_marks(message), model: others}}
    return message.model_copy(update={"additional_kwargs": marks})


def _name(model: BaseChatModel) -> str:
    return model_identifier(model) or type(model).__name__
