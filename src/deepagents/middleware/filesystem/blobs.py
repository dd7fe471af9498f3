"""Media lie in files named by their digest; state keeps the name, and a request gets the bytes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage

from deepagents._async import in_thread
from deepagents._deprecation import warn_caller
from deepagents._state.runtime import in_graph, read_channel, write_channel
from deepagents.backends._resolve import is_factory
from deepagents.backends.handle import FileCalls, open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.errors import ToolFailure
from deepagents.middleware._history import BLOB_KEY, blob_of, blobs_below

REFERENCE: Final = BLOB_KEY
CHANNEL: Final = "_blob_payloads"
T = TypeVar("T")
_GONE = "The content of this {kind}{place} is gone.{way_out}"
_PER_TRANSFER = 16
_MOST_PER_UPLOAD = 16 * 1024 * 1024
_FELT = 1024 * 1024
_PIECE = 64 * 1024


def blob_folder(files: FileCalls) -> str:
    """Name the directory of the blobs."""
    return blobs_below(files.capabilities().artifacts_root)


def lands_in_state(files: FileCalls) -> bool:
    """Tell whether blobs would end up in the state that they are to be kept out of."""
    return files.capabilities(blob_folder(files)).state_files


def keeps_out_of_state(backend: BACKEND_TYPES) -> bool:
    """Tell whether blobs on this backend stay out of state, as far as that is known; warn if they do not."""
    if is_factory(backend) or not lands_in_state(open_backend(backend).files(None)):
        return True
    warn_caller(
        "offload_binary_content=True does nothing here: this backend keeps its artifacts in state. Use a "
        "backend with files elsewhere, or a CompositeBackend that routes its blobs there."
    )
    return False


@dataclass(frozen=True, slots=True)
class Blobs:
    """Moves the bytes of media out of messages, and back in for a request."""

    files: FileCalls

    async def moved_out(self, message: Any) -> Any:
        """Return a message with its media saved and named; what cannot be saved stays in it."""
        return (await self.all_moved_out([message]))[0]

    async def all_moved_out(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Return messages with their media saved and named; what cannot be saved stays in them."""
        holding = [message for message in messages if holds_bytes(message)]
        known: Mapping[str, str] = _remembered() if holding else {}
        holding = [message for message in holding if not message.id or _failed(message) not in known]
        if not holding:
            return messages
        payloads = dict.fromkeys(payload for message in holding for payload in _payloads(message))
        digests = await self._saved(list(payloads))
        moved = {id(message): _named(message, digests) for message in holding}
        failed = {_failed(each): "" for each in moved.values() if each.id and holds_bytes(each)}
        _remember({**{digest: payload for payload, digest in digests.items()}, **failed})
        return [moved.get(id(message), message) for message in messages]

    async def moved_in(self, messages: list[AnyMessage]) -> list[AnyMessage]:
        """Return messages with the bytes of their media, or a sentence where those are gone."""
        holding = [each for each in messages if _holds_reference(each)]
        if not holding:
            return messages
        payloads = await self._found(holding)
        filled = {id(message): _filled(message, payloads) for message in holding}
        return [filled.get(id(message), message) for message in messages]

    async def _saved(self, payloads: Sequence[str]) -> dict[str, str]:
        """Save what can be saved, several at a time; return the digest of each that is in a file now."""
        digests: dict[str, str] = {}
        for batch in _batches(payloads):
            digests.update(await self._uploaded(batch))
        return digests

    async def _uploaded(self, payloads: Sequence[str]) -> dict[str, str]:
        decoded = await _off_the_loop(sum(map(len, payloads)), lambda: _decoded(payloads))
        if not decoded:
            return {}
        folder = blob_folder(self.files)
        try:
            done = await self.files.upload_all(
                [(f"{folder}/{digest}", data) for digest, data in decoded.values()]
            )
        except ToolFailure:
            return {}
        return {
            payload: digest
            for (payload, (digest, _)), there in zip(decoded.items(), done, strict=True)
            if there
        }

    async def _found(self, messages: Sequence[AnyMessage]) -> Mapping[str, str]:
        """Return what the references stand for, from this run's memory or else from the files."""
        wanted = dict.fromkeys(digest for message in messages for digest in _digests(message))
        known = _remembered()
        payloads = {digest: known[digest] for digest in wanted if digest in known}
        missing = [digest for digest in wanted if digest not in known]
        for at in range(0, len(missing), _PER_TRANSFER):
            found = await self._downloaded(missing[at : at + _PER_TRANSFER])
            payloads.update(found)
        if missing:
            _remember({digest: payloads[digest] for digest in missing if digest in payloads})
        return payloads

    async def _downloaded(self, digests: Sequence[str]) -> dict[str, str]:
        folder = blob_folder(self.files)
        try:
            contents = await self.files.download_all([f"{folder}/{digest}" for digest in digests])
        except ToolFailure:
            return {}
        found = {digest: each for digest, each in zip(digests, contents, strict=True) if each is not None}
        return await _off_the_loop(sum(map(len, found.values())), lambda: _encoded(found))


async def _off_the_loop(size: int, work: Callable[[], T]) -> T:
    """Do work on so many bytes: where it is awaited and would be felt, in a thread."""
    return await in_thread(work) if size > _FELT else work()


def _batches(payloads: Sequence[str]) -> Iterator[Sequence[str]]:
    batch: list[str] = []
    size = 0
    for payload in payloads:
        if batch and (len(batch) == _PER_TRANSFER or size + len(payload) > _MOST_PER_UPLOAD):
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += len(payload)
    yield batch


def _decoded(payloads: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    """Return digest and bytes of each payload that is base64."""
    found: dict[str, tuple[str, bytes]] = {}
    for payload in payloads:
        with suppress(ValueError):
            data = _bytes_of(payload)
            found[payload] = (hashlib.sha256(data).hexdigest(), data)
    return found


def _bytes_of(payload: str) -> bytes:
    """Decode a piece at a time, so that other threads get a turn.

    Raises:
        ValueError: when it is no base64.
    """
    if "=" in payload[:-2]:
        raise ValueError("padding stands before the end")
    pieces = range(0, len(payload), _PIECE * 4)
    return b"".join(base64.b64decode(payload[at : at + _PIECE * 4], validate=True) for at in pieces)


def _base64_of(content: bytes) -> str:
    pieces = range(0, len(content), _PIECE * 3)
    return "".join(base64.b64encode(content[at : at + _PIECE * 3]).decode("ascii") for at in pieces)


def _encoded(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return as base64 what is what its digest says."""
    return {
        digest: _base64_of(content)
        for digest, content in contents.items()
        if hashlib.sha256(content).hexdigest() == digest
    }


def holds_bytes(message: Any) -> bool:
    """Tell whether this is a message whose media are kept in files, and holds some itself."""
    return _may_hold(message) and any(map(_is_inline, message.content))


def _may_hold(message: Any) -> bool:
    if not isinstance(message, BaseMessage) or isinstance(message.content, str):
        return False
    return isinstance(message, HumanMessage) or (
        isinstance(message, ToolMessage) and message.name == "read_file"
    )


def _is_inline(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(cast("dict[str, Any]", block).get("base64"), str)


def _payloads(message: Any) -> Iterator[str]:
    yield from (block["base64"] for block in message.content if _is_inline(block))


def _named(message: Any, digests: Mapping[str, str]) -> Any:
    """Return a message whose saved media are named by their digests."""
    content: list[Any] = []
    for block in message.content:
        digest = digests.get(block["base64"]) if _is_inline(block) else None
        if digest is None:
            content.append(block)
            continue
        rest = {key: value for key, value in block.items() if key != "base64"}
        content.append({**rest, REFERENCE: digest})
    if all(new is old for new, old in zip(content, message.content, strict=True)):
        return message
    return message.model_copy(update={"content": content})


def _failed(message: Any) -> str:
    """Name the note that media of a message could not be saved."""
    return f"failed {message.id}"


def _holds_reference(message: AnyMessage) -> bool:
    return _may_hold(message) and any(_is_reference(block) for block in message.content)


def _is_reference(block: Any) -> bool:
    return isinstance(block, dict) and REFERENCE in block


def _digests(message: AnyMessage) -> Iterator[str]:
    if not _may_hold(message):
        return
    for block in message.content:
        digest = blob_of(block)
        if digest is not None:
            yield digest


def _filled(message: AnyMessage, payloads: Mapping[str, str]) -> AnyMessage:
    path: Any = message.additional_kwargs.get("read_file_path")
    content = [
        _block(cast("dict[str, Any]", block), payloads, path) if _is_reference(block) else block
        for block in message.content
    ]
    return message.model_copy(update={"content": content})


def _block(block: Mapping[str, Any], payloads: Mapping[str, str], path: Any) -> dict[str, Any]:
    digest = block[REFERENCE]
    rest = {key: value for key, value in block.items() if key != REFERENCE}
    payload = payloads.get(digest) if isinstance(digest, str) else None
    if payload is not None:
        return {**rest, "base64": payload}
    place = f" from {path!r}" if path else ""
    way_out = " Call read_file again to see it." if path else " Ask for it again if it matters."
    return {"type": "text", "text": _GONE.format(kind=rest.get("type", "file"), place=place, way_out=way_out)}


def _remembered() -> Mapping[str, str]:
    known: Mapping[str, str] | None = read_channel(CHANNEL) if in_graph() else None
    return known or {}


def _remember(payloads: Mapping[str, str]) -> None:
    if payloads and in_graph():
        write_channel(CHANNEL, payloads)
