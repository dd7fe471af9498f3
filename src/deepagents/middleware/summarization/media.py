"""Media that lie inline in messages: found, kept in files of their own, and named where their bytes were."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, cast
from urllib.parse import quote, unquote_to_bytes

from langchain_core.messages import BaseMessage

from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.middleware._history import blob_of, blobs_below

Message = TypeVar("Message", bound=BaseMessage)
Coding = Literal["base64", "percent", "bytes", "verbatim"]
"""How the bytes of a file become what stood in the message; `verbatim`: they are its text."""

_NAME_LENGTH: Final = 32
_UNKNOWN: Final = "application/octet-stream"
_DATA_URL: Final = re.compile(
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*(?P<coded>;base64)?,", re.I
)
_ENDINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "audio/mpeg": "mp3",
        "audio/mp4": "m4a",
        "audio/x-wav": "wav",
        "image/jpeg": "jpg",
        "image/svg+xml": "svg",
        "text/plain": "txt",
        "video/quicktime": "mov",
        _UNKNOWN: "bin",
    }
)
_ENDING = re.compile(r"[a-z0-9]{1,8}")
_UNRESERVED: Final = "!#$&'()*+,/:;=?@[]~"
_TYPE_KEYS: Final = ("mime_type", "media_type")
_MARKS_OF_BASE64: Final = frozenset({*_TYPE_KEYS, "format", "transcript", "expires_at"})
_TEXT_KEYS: Final = frozenset({"text", "thinking", "reasoning", "content", "arguments"})


@dataclass(frozen=True, slots=True)
class Payload:
    """What one place in a message holds inline: its bytes, the name of a file for them, the way back."""

    data: bytes = field(repr=False)
    media_type: str
    coding: Coding
    before: str = ""
    name: str = ""

    @property
    def kind(self) -> str:
        """Say in a word what it is."""
        return _kind(self.media_type.partition("/")[0])


@dataclass(frozen=True, slots=True)
class Media:
    """The inline media of some messages, and the directory for them; each payload is decoded once.

    `root` is where the directory of media lies that have moved out of messages earlier.
    """

    folder: str
    root: str = "/"
    _known: dict[tuple[str, str | bytes], Payload] = field(
        default_factory=dict[tuple[str, str | bytes], Payload], repr=False
    )

    def path(self, payload: Payload) -> str:
        """Name the file of a payload."""
        return f"{self.folder}/{payload.name}"

    def at(self, holder: Mapping[Any, Any], key: Any) -> Payload | None:
        """Return what lies inline at a key of a mapping; nothing where that is no medium."""
        value = holder[key]
        if not isinstance(value, (str, bytes)) or not value or not _may_hold(holder, key, value):
            return None
        named = _named_type(holder)
        seen = (named, value)
        if seen not in self._known:
            self._known[seen] = _payload(value, named)
        return self._known[seen]

    def inside(self, value: Any) -> Iterator[Payload]:
        """Walk over all payloads in a tree of mappings and lists."""
        if isinstance(value, Mapping):
            holder = cast("Mapping[Any, Any]", value)
            for key in holder:
                payload = self.at(holder, key)
                yield from [payload] if payload else self.inside(holder[key])
        elif isinstance(value, (list, tuple)):
            for each in cast("Sequence[Any]", value):
                yield from self.inside(each)

    async def save(self, files: Files, payloads: Iterable[Payload]) -> frozenset[str]:
        """Put payloads in their files, those that are not there yet with one call; name what failed."""
        wanted = {each.name: each for each in payloads}
        there = await _sizes(files, self.folder) if wanted else {}
        missing = [each for each in wanted.values() if there.get(self.path(each)) != len(each.data)]
        if not missing:
            return frozenset()
        try:
            done = await files.upload_all([(self.path(each), each.data) for each in missing])
        except ToolFailure:
            done = [False] * len(missing)
        return frozenset(each.name for each, saved in zip(missing, done, strict=True) if not saved)

    def tag(self, payload: Payload, unsaved: Collection[str] = ()) -> str:
        """Name a payload for a reader."""
        if payload.name in unsaved:
            return f'<{payload.kind} error="failed_to_offload" />'
        return f'<{payload.kind} url="{self.path(payload)}" />'

    def referenced(self, messages: Sequence[Message], unsaved: Collection[str] = ()) -> Sequence[Message]:
        """Return messages that name their media instead of holding them; the same list where none do."""
        shown = [self._shown(each, unsaved) for each in messages]
        return messages if _same(messages, shown) else shown

    def _shown(self, message: Message, unsaved: Collection[str]) -> Message:
        update: dict[str, Any] = {}
        for part in ("content", "additional_kwargs", "artifact"):
            before = getattr(message, part, None)
            after = self._named(before, unsaved)
            if after is not before:
                update[part] = after
        return message.model_copy(update=update) if update else message

    def _named(self, value: Any, unsaved: Collection[str]) -> Any:
        if isinstance(value, list):
            items = cast("list[Any]", value)
            after = [self._block(each, unsaved) for each in items]
            return items if _same(items, after) else after
        if isinstance(value, dict):
            holder = cast("dict[Any, Any]", value)
            named = [self._named_at(holder, key, unsaved) for key in holder]
            return holder if _same(list(holder.values()), named) else dict(zip(holder, named, strict=True))
        return value

    def _named_at(self, holder: dict[Any, Any], key: Any, unsaved: Collection[str]) -> Any:
        payload = self.at(holder, key)
        return self.tag(payload, unsaved) if payload else self._named(holder[key], unsaved)

    def _block(self, block: Any, unsaved: Collection[str]) -> Any:
        """Return a text that names a medium for the block that is one."""
        digest = blob_of(block)
        if digest is not None:
            tag = f'<{_kind(block.get("type"))} url="{blobs_below(self.root)}/{digest}" />'
            return {"type": "text", "text": tag}
        tags = [self.tag(each, unsaved) for each in self._own(block)]
        return {"type": "text", "text": " ".join(tags)} if tags else self._named(block, unsaved)

    def _own(self, block: Any) -> Iterator[Payload]:
        """Walk over the payloads of a block, but not over those of blocks inside it."""
        if isinstance(block, Mapping):
            holder = cast("Mapping[Any, Any]", block)
            for key in holder:
                payload = self.at(holder, key)
                yield from [payload] if payload else self._own(holder[key])


def may_hold_media(message: BaseMessage) -> bool:
    """Tell whether there is any place in a message where media could be."""
    extra: Any = message.additional_kwargs or getattr(message, "artifact", None)
    return bool(extra) or not isinstance(message.content, str)


def _kind(name: Any) -> str:
    return name if name in ("image", "audio", "video") else "file"


def _same(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return all(new is old for new, old in zip(after, before, strict=True))


async def _sizes(files: Files, folder: str) -> dict[str, int | None]:
    """Tell what lies in a directory; nothing that is known of where it cannot be listed."""
    try:
        found = await files.ls(folder)
    except ToolFailure:
        return {}
    return {each["path"]: each.get("size") for each in found.entries or ()}


def original(data: bytes, coding: Coding, before: str) -> str | bytes:
    """Turn the bytes of a file into what stood in the message."""
    match coding:
        case "bytes":
            return data
        case "base64":
            return before + base64.b64encode(data).decode()
        case "percent":
            return before + quote(data, safe=_UNRESERVED)
        case "verbatim":
            return before + data.decode("utf-8", "surrogatepass")


def _may_hold(holder: Mapping[Any, Any], key: Any, value: str | bytes) -> bool:
    if isinstance(value, bytes) or key in ("base64", "file_data"):
        return True
    if key in _TEXT_KEYS:
        return False
    if key == "data" and holder.get("type") != "text":
        is_coded = "base64" in (holder.get("type"), holder.get("source_type"))
        return is_coded or not _MARKS_OF_BASE64.isdisjoint(holder)
    return _DATA_URL.match(value) is not None


def _named_type(holder: Mapping[Any, Any]) -> str:
    for key in _TYPE_KEYS:
        if isinstance(holder.get(key), str):
            return holder[key]
    return f"audio/{holder['format']}" if isinstance(holder.get("format"), str) else _UNKNOWN


def _payload(value: str | bytes, named: str) -> Payload:
    if isinstance(value, bytes):
        return _with_name(Payload(value, named, "bytes"))
    url = _DATA_URL.match(value)
    if url is None:
        return _decoded(value, named, "")
    before, rest = value[: url.end()], value[url.end() :]
    named = url["type"] or "text/plain"
    if url["coded"]:
        return _decoded(rest, named, before)
    data = unquote_to_bytes(rest.encode("utf-8", "surrogatepass"))
    return _checked(Payload(data, named, "percent", before), rest)


def _decoded(text: str, named: str, before: str) -> Payload:
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return _checked(None, text, before)
    return _checked(Payload(data, named, "base64", before), text, before)


def _checked(payload: Payload | None, text: str, before: str = "") -> Payload:
    """Keep the text itself where its spelling would not come back from the bytes."""
    if payload is None or original(payload.data, payload.coding, "") != text:
        before = payload.before if payload else before
        return _with_name(Payload(text.encode("utf-8", "surrogatepass"), "text/plain", "verbatim", before))
    return _with_name(payload)


def _with_name(payload: Payload) -> Payload:
    digest = hashlib.sha256(payload.data).hexdigest()[:_NAME_LENGTH]
    return replace(payload, name=f"{digest}.{_ending(payload.media_type.lower())}")


def _ending(media_type: str) -> str:
    subtype = media_type.partition("/")[2].removeprefix("x-")
    return _ENDINGS.get(media_type) or (subtype if _ENDING.fullmatch(subtype) else "bin")
