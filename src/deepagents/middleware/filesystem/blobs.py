"""Media lie in files named by their digest; state keeps the name, and a request gets the bytes."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage

from deepagents._channels import in_graph, read_channel, write_channel
from deepagents._deprecation import warn_caller
from deepagents._flow import Flow
from deepagents.backends._legacy import is_factory
from deepagents.backends.calls import Files
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.errors import ToolFailure

REFERENCE: Final = "deepagents_blob"
CHANNEL: Final = "_blob_payloads"
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_GONE = "The content of this {kind}{place} is gone.{way_out}"
_PER_DOWNLOAD = 16


def blob_folder(files: Files) -> str:
    """Name the directory of the blobs."""
    return f"{files.capabilities().artifacts_root.rstrip('/')}/blobs"


def lands_in_state(files: Files) -> bool:
    """Tell whether blobs would end up in the state that they are to be kept out of."""
    return files.capabilities(blob_folder(files)).state_files


def keeps_out_of_state(backend: BACKEND_TYPES) -> bool:
    """Tell whether blobs on this backend stay out of state, as far as that is known; warn if they do not."""
    if is_factory(backend) or not lands_in_state(Files.of(backend, None)):
        return True
    warn_caller(
        "offload_binary_content=True does nothing here: this backend keeps its artifacts in state. Use a "
        "backend with files elsewhere, or a CompositeBackend that routes its blobs there."
    )
    return False


@dataclass(frozen=True, slots=True)
class Blobs:
    """Moves the bytes of media out of messages, and back in for a request."""

    files: Files

    def moved_out(self, message: Any) -> Flow[Any]:
        """Return a message with its media saved and named; what cannot be saved stays in it."""
        if not holds_bytes(message):
            return message
        failed = f"failed {message.id}"
        if message.id and failed in _remembered():
            return message
        content: list[Any] = []
        for block in message.content:
            content.append((yield from self._named(block)) if _is_inline(block) else block)
        if any(map(_is_inline, content)):
            _remember({failed: ""})
        return message if content == message.content else message.model_copy(update={"content": content})

    def moved_in(self, messages: list[AnyMessage]) -> Flow[list[AnyMessage]]:
        """Return messages with the bytes of their media, or a sentence where those are gone."""
        holding = [each for each in messages if _holds_reference(each)]
        if not holding:
            return messages
        payloads = yield from self._payloads(holding)
        filled = {id(message): _filled(message, payloads) for message in holding}
        return [filled.get(id(message), message) for message in messages]

    def _named(self, block: dict[str, Any]) -> Flow[dict[str, Any]]:
        payload: str = block["base64"]
        try:
            data = base64.b64decode(payload, validate=True)
        except ValueError:
            return block
        digest = hashlib.sha256(data).hexdigest()
        try:
            yield from self.files.upload(f"{blob_folder(self.files)}/{digest}", data)
        except ToolFailure:
            return block
        _remember({digest: payload})
        return {**{key: value for key, value in block.items() if key != "base64"}, REFERENCE: digest}

    def _payloads(self, messages: Sequence[AnyMessage]) -> Flow[Mapping[str, str]]:
        """Return what the references stand for, from this run's memory or else from the files."""
        wanted = dict.fromkeys(digest for message in messages for digest in _digests(message))
        known = _remembered()
        payloads = {digest: known[digest] for digest in wanted if digest in known}
        missing = [digest for digest in wanted if digest not in known]
        for at in range(0, len(missing), _PER_DOWNLOAD):
            found = yield from self._downloaded(missing[at : at + _PER_DOWNLOAD])
            payloads.update(found)
        if missing:
            _remember({digest: payloads[digest] for digest in missing if digest in payloads})
        return payloads

    def _downloaded(self, digests: Sequence[str]) -> Flow[dict[str, str]]:
        folder = blob_folder(self.files)
        try:
            contents = yield from self.files.download_all([f"{folder}/{digest}" for digest in digests])
        except ToolFailure:
            return {}
        return {
            digest: base64.b64encode(content).decode("ascii")
            for digest, content in zip(digests, contents, strict=True)
            if content is not None and hashlib.sha256(content).hexdigest() == digest
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


def _holds_reference(message: AnyMessage) -> bool:
    return _may_hold(message) and any(_is_reference(block) for block in message.content)


def _is_reference(block: Any) -> bool:
    return isinstance(block, dict) and REFERENCE in block


def _digests(message: AnyMessage) -> Iterator[str]:
    if not _may_hold(message):
        return
    for block in message.content:
        digest = cast("dict[str, Any]", block)[REFERENCE] if _is_reference(block) else None
        if isinstance(digest, str) and _DIGEST.match(digest):
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
