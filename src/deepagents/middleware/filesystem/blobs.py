"""Keep the bytes of media in files named by digest: the state holds the digest, a request gets the bytes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage

from deepagents._async import in_thread
from deepagents._deprecation import warn_caller
from deepagents._state.runtime import in_graph, read_channel, write_channel
from deepagents._values import valueclass
from deepagents.backends.handle import BackendHandle, FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware._history import BLOB_KEY, blob_of, blobs_below

CHANNEL: Final = "_blob_payloads"
"""State key of this run's memory: payloads by digest, and which messages could not be saved."""

_GONE: Final = "The content of this {kind}{source} is gone.{way_out}"
# Bounds on the media that are in memory at once, coded and decoded.
_FILES_PER_TRANSFER: Final = 16
_CHARACTERS_PER_UPLOAD: Final = 16 * 1024 * 1024


def blob_folder(files: FileCalls) -> str:
    """Return the directory of the blobs."""
    return blobs_below(files.capabilities().artifacts_root)


def lands_in_state(files: FileCalls) -> bool:
    """Return whether blobs would end up in the state that they are to be kept out of."""
    return files.capabilities(blob_folder(files)).state_files


def keeps_out_of_state(handle: BackendHandle) -> bool:
    """Return whether blobs stay out of state, as far as that is known; warn if they do not."""
    if handle.is_factory or not lands_in_state(handle.files(None)):
        return True
    warn_caller(
        "offload_binary_content=True does nothing here: this backend keeps its artifacts in state. Use a "
        "backend with files elsewhere, or a CompositeBackend that routes its blobs there."
    )
    return False


@valueclass
class Blobs:
    """Moves the bytes of media out of messages, and back in for a request.

    Args:
        files: where the bytes go.
        readers: names of the tools whose results show what is in files.
    """

    files: FileCalls
    readers: Collection[str]

    async def extract(self, message: Any) -> Any:
        """Return a message with its media saved and named; what cannot be saved stays in it."""
        return (await self.extract_all([message]))[0]

    async def extract_all(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Return messages with their media saved and named; what cannot be saved stays in them."""
        holding = [message for message in messages if self._holds_bytes(message)]
        known: Mapping[str, str] = _recall() if holding else {}
        holding = [message for message in holding if not message.id or _failure_key(message) not in known]
        if not holding:
            return messages
        payloads = dict.fromkeys(
            block["base64"] for each in holding for block in each.content if _is_inline(block)
        )
        digests: dict[str, str] = {}
        for batch in _batches(list(payloads)):
            digests.update(await self._upload(batch))
        replaced = {id(message): _with_digests(message, digests) for message in holding}
        # A message whose media cannot be saved is not tried again at every step of the run.
        failed = {_failure_key(each): "" for each in replaced.values() if each.id and self._holds_bytes(each)}
        _remember({**{digest: payload for payload, digest in digests.items()}, **failed})
        return [replaced.get(id(message), message) for message in messages]

    async def insert_all(self, messages: list[AnyMessage]) -> list[AnyMessage]:
        """Return messages with the bytes of their media, or a sentence where those are gone."""
        holding = [
            each for each in messages if self._may_hold(each) and any(map(_is_reference, each.content))
        ]
        if not holding:
            return messages
        payloads = await self._find(holding)
        filled = {id(message): _with_payloads(message, payloads) for message in holding}
        return [filled.get(id(message), message) for message in messages]

    def _holds_bytes(self, message: Any) -> bool:
        return self._may_hold(message) and any(map(_is_inline, message.content))

    def _may_hold(self, message: Any) -> bool:
        """Return whether this is a message whose media are kept in files."""
        if not isinstance(message, BaseMessage) or isinstance(message.content, str):
            return False
        is_result = isinstance(message, ToolMessage) and message.name in self.readers
        return is_result or isinstance(message, HumanMessage)

    async def _upload(self, payloads: Sequence[str]) -> dict[str, str]:
        """Save some payloads; return the digest of each that is in a file now."""
        decoded = await in_thread(lambda: _decode_all(payloads))
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

    async def _find(self, messages: Sequence[AnyMessage]) -> Mapping[str, str]:
        """Return the payloads by digest, from this run's memory or else from the files."""
        blocks = (block for message in messages for block in message.content)
        wanted = list(dict.fromkeys(digest for block in blocks if (digest := blob_of(block)) is not None))
        known = _recall()
        payloads = {digest: known[digest] for digest in wanted if digest in known}
        missing = [digest for digest in wanted if digest not in known]
        for at in range(0, len(missing), _FILES_PER_TRANSFER):
            payloads.update(await self._download(missing[at : at + _FILES_PER_TRANSFER]))
        _remember({digest: payloads[digest] for digest in missing if digest in payloads})
        return payloads

    async def _download(self, digests: Sequence[str]) -> dict[str, str]:
        folder = blob_folder(self.files)
        try:
            contents = await self.files.download_all([f"{folder}/{digest}" for digest in digests])
        except ToolFailure:
            return {}
        found = {digest: each for digest, each in zip(digests, contents, strict=True) if each is not None}
        return await in_thread(lambda: _encode_all(found))


def _batches(payloads: Sequence[str]) -> Iterator[Sequence[str]]:
    batch: list[str] = []
    size = 0
    for payload in payloads:
        full = len(batch) == _FILES_PER_TRANSFER or size + len(payload) > _CHARACTERS_PER_UPLOAD
        if batch and full:
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += len(payload)
    yield batch


def _decode_all(payloads: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    """Return digest and bytes of each payload that is base64."""
    found: dict[str, tuple[str, bytes]] = {}
    for payload in payloads:
        with suppress(ValueError):
            data = base64.b64decode(payload, validate=True)
            found[payload] = (hashlib.sha256(data).hexdigest(), data)
    return found


def _encode_all(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return as base64 what fits its digest: an agent may write to these files, too."""
    return {
        digest: base64.b64encode(content).decode("ascii")
        for digest, content in contents.items()
        if hashlib.sha256(content).hexdigest() == digest
    }


def _is_inline(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(cast("dict[str, Any]", block).get("base64"), str)


def _is_reference(block: Any) -> bool:
    return isinstance(block, dict) and BLOB_KEY in block


def _with_digests(message: Any, digests: Mapping[str, str]) -> Any:
    content = [
        {
            **{key: value for key, value in block.items() if key != "base64"},
            BLOB_KEY: digests[block["base64"]],
        }
        if _is_inline(block) and block["base64"] in digests
        else block
        for block in message.content
    ]
    if all(new is old for new, old in zip(content, message.content, strict=True)):
        return message
    return message.model_copy(update={"content": content})


def _failure_key(message: Any) -> str:
    """Return the key of the note that media of a message could not be saved."""
    return f"failed {message.id}"


def _with_payloads(message: AnyMessage, payloads: Mapping[str, str]) -> AnyMessage:
    path: Any = message.additional_kwargs.get("read_file_path")
    content = [
        _restore(cast("dict[str, Any]", block), payloads, path) if _is_reference(block) else block
        for block in message.content
    ]
    return message.model_copy(update={"content": content})


def _restore(block: Mapping[str, Any], payloads: Mapping[str, str], path: Any) -> dict[str, Any]:
    digest = block[BLOB_KEY]
    rest = {key: value for key, value in block.items() if key != BLOB_KEY}
    payload = payloads.get(digest) if isinstance(digest, str) else None
    if payload is not None:
        return {**rest, "base64": payload}
    source = f" from {path!r}" if path else ""
    way_out = " Call read_file again to see it." if path else " Ask for it again if it matters."
    text = _GONE.format(kind=rest.get("type", "file"), source=source, way_out=way_out)
    return {"type": "text", "text": text}


def _recall() -> Mapping[str, str]:
    known: Mapping[str, str] | None = read_channel(CHANNEL) if in_graph() else None
    return known or {}


def _remember(payloads: Mapping[str, str]) -> None:
    if payloads and in_graph():
        write_channel(CHANNEL, payloads)
