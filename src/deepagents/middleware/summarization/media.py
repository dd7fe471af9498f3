"""Find media that lie inline in messages, and keep them in files of their own next to the archive."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, cast

from langchain_core.messages import AnyMessage

from deepagents._async import in_thread
from deepagents._state.runtime import has_channel, in_graph
from deepagents._values import field, valueclass
from deepagents.backends.handle import FileCalls
from deepagents.backends.state import CHANNEL
from deepagents.errors import ToolFailure
from deepagents.middleware._history import blob_of, blobs_below

_NAME_LENGTH: Final = 32
_UNKNOWN: Final = "application/octet-stream"
_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.I)
_ENDINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "audio/mpeg": "mp3",
        "audio/mp4": "m4a",
        "image/jpeg": "jpg",
        "image/svg+xml": "svg",
        "text/plain": "txt",
        "video/quicktime": "mov",
    }
)
_ENDING: Final = re.compile(r"[a-z0-9]{1,8}")
_TYPE_KEYS: Final = ("mime_type", "media_type")
_MARKS_OF_BASE64: Final = frozenset({*_TYPE_KEYS, "format", "transcript", "expires_at"})
_TEXT_KEYS: Final = frozenset({"text", "thinking", "reasoning", "content", "arguments"})


@valueclass
class Medium:
    """Bytes that lie inline in a message, and the name of a file for them: the same for the same bytes."""

    data: bytes = field(repr=False)
    kind: str
    name: str
    before: str | None
    """What stands before the coded bytes; `None` where the message holds bytes."""


class MediaFiles:
    """The files for the media of some messages, each decoded once.

    `folder` is for new ones; blobs below `root` hold those that moved out of messages earlier.
    """

    def __init__(self, folder: str, root: str = "/") -> None:
        self.folder = folder
        self.root = root
        self.unsaved: frozenset[str] = frozenset()
        self._saved: frozenset[str] = frozenset()
        self._known: dict[tuple[str, str | bytes], Medium | None] = {}

    def reference(self, holder: Mapping[Any, Any], key: Any) -> dict[str, str] | None:
        """Return what replaces the medium at a key in the archive; `None` without one that has a file."""
        medium = self._find(holder, key)
        if medium is None or medium.name in self.unsaved:
            return None
        before = {} if medium.before is None else {"before": medium.before}
        return {"$media": f"{self.folder}/{medium.name}", **before}

    async def save(self, files: FileCalls) -> None:
        """Upload with one call those found so far that are not there yet; note in `unsaved` what failed."""
        found = {each.name: each.data for each in self._known.values() if each}
        found = {name: data for name, data in found.items() if name not in self._saved | self.unsaved}
        there = await file_sizes(files, self.folder) if found else {}
        # Compare sizes too: a crash can leave half a file.
        missing = {
            name: data for name, data in found.items() if there.get(f"{self.folder}/{name}") != len(data)
        }
        failed = list(missing)
        if missing and not are_lost(files, self.folder):
            with suppress(ToolFailure):
                done = await files.upload_all([(f"{self.folder}/{name}", missing[name]) for name in missing])
                failed = [name for name, saved in zip(missing, done, strict=True) if not saved]
        self.unsaved |= frozenset(failed)
        self._saved |= found.keys() - self.unsaved

    async def name(self, messages: Sequence[AnyMessage], files: FileCalls) -> Sequence[AnyMessage]:
        """Return messages with a tag instead of each medium, for a reader that cannot see media."""
        if all(isinstance(each.content, str) for each in messages):
            return messages
        await in_thread(lambda: list(map(self._describe_message, messages)))
        await self.save(files)
        return await in_thread(lambda: list(map(self._describe_message, messages)))

    def _describe_message(self, message: AnyMessage) -> AnyMessage:
        described = self._describe(message.content)
        return message if described == message.content else message.model_copy(update={"content": described})

    def _describe(self, value: Any) -> Any:
        """Return a text block of tags for each block that holds media."""
        match value:
            case list():
                return [self._describe(each) for each in cast("list[Any]", value)]
            case dict():
                holder = cast("dict[str, Any]", value)
                tags = list(self._tags(holder))
                if tags:
                    return {"type": "text", "text": " ".join(tags)}
                return {key: self._describe(each) for key, each in holder.items()}
            case _:
                return value

    def _tags(self, holder: Mapping[Any, Any]) -> Iterator[str]:
        """Walk over the media of a block, but not over those of blocks inside it."""
        digest = blob_of(holder)
        if digest is not None:
            yield f'<{_kind(holder.get("type"))} url="{blobs_below(self.root)}/{digest}" />'
        for key, value in holder.items():
            medium = self._find(holder, key)
            if medium is not None:
                is_lost = medium.name in self.unsaved
                shown = 'error="failed_to_offload"' if is_lost else f'url="{self.folder}/{medium.name}"'
                yield f"<{medium.kind} {shown} />"
            elif isinstance(value, Mapping):
                yield from self._tags(cast("Mapping[Any, Any]", value))

    def _find(self, holder: Mapping[Any, Any], key: Any) -> Medium | None:
        value = holder[key]
        if not isinstance(value, str | bytes) or not value or not _may_hold(holder, key, value):
            return None
        seen = (_media_type(holder, value), value)
        if seen not in self._known:
            self._known[seen] = _decode(value, seen[0])
        return self._known[seen]


def _decode(value: str | bytes, media_type: str) -> Medium | None:
    """Return the medium of a value; text that its bytes would not give again is none, and stays as it is."""
    data, before = value if isinstance(value, bytes) else b"", None
    if isinstance(value, str):
        url = _DATA_URL.match(value)
        coded = value[url.end() :] if url else value
        try:
            data = base64.b64decode(coded, validate=True)
        except ValueError:
            return None
        if base64.b64encode(data).decode() != coded:
            return None
        before = value[: len(value) - len(coded)]
    family, _, subtype = media_type.lower().partition("/")
    subtype = subtype.removeprefix("x-")
    ending = _ENDINGS.get(media_type.lower()) or (subtype if _ENDING.fullmatch(subtype) else "bin")
    return Medium(data, _kind(family), f"{hashlib.sha256(data).hexdigest()[:_NAME_LENGTH]}.{ending}", before)


def _may_hold(holder: Mapping[Any, Any], key: Any, value: str | bytes) -> bool:
    if isinstance(value, bytes) or key in ("base64", "file_data"):
        return True
    if key in _TEXT_KEYS:
        return False
    if key == "data" and holder.get("type") != "text":
        is_coded = "base64" in (holder.get("type"), holder.get("source_type"))
        return is_coded or not _MARKS_OF_BASE64.isdisjoint(holder)
    return _DATA_URL.match(value) is not None


def _media_type(holder: Mapping[Any, Any], value: str | bytes) -> str:
    url = _DATA_URL.match(value) if isinstance(value, str) else None
    if url is not None:
        return url["type"] or "text/plain"
    for key in _TYPE_KEYS:
        if isinstance(holder.get(key), str):
            return holder[key]
    return f"audio/{holder['format']}" if isinstance(holder.get("format"), str) else _UNKNOWN


def _kind(name: Any) -> str:
    return name if name in ("image", "audio", "video") else "file"


def are_lost(files: FileCalls, path: str) -> bool:
    """Return whether files go to a state that has no channel for them: nothing else would show that."""
    return files.capabilities(path).state_files and in_graph() and not has_channel(CHANNEL)


async def file_sizes(files: FileCalls, folder: str) -> dict[str, int | None]:
    """Return the sizes of the files in a directory; nothing where it cannot be listed."""
    try:
        found = await files.ls(folder)
    except ToolFailure:
        return {}
    return {each["path"]: each.get("size") for each in found.entries or ()}
