"""Find media that lie inline in messages, and keep them in files of their own next to the archive."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

from langchain_core.messages import AnyMessage, BaseMessage

from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware._history import blob_of, blobs_below

_NAME_LENGTH: Final = 32
_UNKNOWN: Final = "application/octet-stream"
_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.I)
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
_ENDING: Final = re.compile(r"[a-z0-9]{1,8}")
_TYPE_KEYS: Final = ("mime_type", "media_type")
_MARKS_OF_BASE64: Final = frozenset({*_TYPE_KEYS, "format", "transcript", "expires_at"})
_TEXT_KEYS: Final = frozenset({"text", "thinking", "reasoning", "content", "arguments"})


@dataclass(frozen=True, slots=True)
class Medium:
    """Bytes that lie inline in a message, and the name of a file for them: the same for the same bytes."""

    data: bytes = field(repr=False)
    kind: str
    name: str
    before: str | None
    """What stands before the coded bytes; `None` where the message holds bytes."""


class MediaFiles:
    """The files for the media of some messages, each decoded once.

    `folder` is for new ones; blobs below `root` hold those that moved out of messages earlier. `refused` says
    that none of them has a file.
    """

    def __init__(self, folder: str, root: str = "/") -> None:
        self.folder = folder
        self.root = root
        self.unsaved: frozenset[str] = frozenset()
        self.refused = False
        self._known: dict[tuple[str, str | bytes], Medium | None] = {}

    def reference(self, holder: Mapping[Any, Any], key: Any) -> dict[str, str] | None:
        """Return what replaces the medium at a key in the archive; `None` without one that has a file."""
        medium = self._find(holder, key)
        if medium is None or not self._has_file(medium):
            return None
        before = {} if medium.before is None else {"before": medium.before}
        return {"$media": f"{self.folder}/{medium.name}", **before}

    async def save(self, files: FileCalls) -> None:
        """Upload with one call those found so far that are not there yet; note in `unsaved` what failed."""
        wanted = {f"{self.folder}/{each.name}": each for each in self._known.values() if each}
        there = await _file_sizes(files, self.folder) if wanted else {}
        # Compare sizes too: a crash can leave half a file.
        missing = {path: each for path, each in wanted.items() if there.get(path) != len(each.data)}
        if not missing:
            return
        try:
            done = await files.upload_all([(path, each.data) for path, each in missing.items()])
        except ToolFailure:
            done = [False] * len(missing)
        failed = [each.name for each, saved in zip(missing.values(), done, strict=True) if not saved]
        self.unsaved |= frozenset(failed)

    def describe(self, message: AnyMessage) -> AnyMessage:
        """Return a message with a tag instead of each medium, for a reader that cannot see media."""
        update: dict[str, Any] = {}
        for part in ("content", "additional_kwargs", "artifact"):
            before = getattr(message, part, None)
            after = self._describe(before)
            if after != before:
                update[part] = after
        return message.model_copy(update=update) if update else message

    def _describe(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._describe_block(each) for each in cast("list[Any]", value)]
        if isinstance(value, dict):
            holder = cast("dict[Any, Any]", value)
            return {key: self._tag_at(holder, key) or self._describe(each) for key, each in holder.items()}
        return value

    def _describe_block(self, block: Any) -> Any:
        """Return a text block of tags for a block that is a medium."""
        digest = blob_of(block)
        if digest is not None:
            kind = _kind(block.get("type"))
            return {"type": "text", "text": f'<{kind} url="{blobs_below(self.root)}/{digest}" />'}
        tags = list(self._own_tags(block))
        return {"type": "text", "text": " ".join(tags)} if tags else self._describe(block)

    def _own_tags(self, block: Any) -> Iterator[str]:
        """Walk over the media of a block, but not over those of blocks inside it."""
        if isinstance(block, Mapping):
            holder = cast("Mapping[Any, Any]", block)
            for key in holder:
                tag = self._tag_at(holder, key)
                yield from [tag] if tag else self._own_tags(holder[key])

    def _tag_at(self, holder: Mapping[Any, Any], key: Any) -> str | None:
        medium = self._find(holder, key)
        if medium is None:
            return None
        if not self._has_file(medium):
            return f'<{medium.kind} error="failed_to_offload" />'
        return f'<{medium.kind} url="{self.folder}/{medium.name}" />'

    def _has_file(self, medium: Medium) -> bool:
        return not self.refused and medium.name not in self.unsaved

    def _find(self, holder: Mapping[Any, Any], key: Any) -> Medium | None:
        value = holder[key]
        if not isinstance(value, str | bytes) or not value or not _may_hold(holder, key, value):
            return None
        seen = (_media_type(holder, value), value)
        if seen not in self._known:
            self._known[seen] = _decode(value, seen[0])
        return self._known[seen]


def may_hold_media(message: BaseMessage) -> bool:
    """Return whether there is anywhere in a message where media could be."""
    extra: Any = message.additional_kwargs or getattr(message, "artifact", None)
    return bool(extra) or not isinstance(message.content, str)


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


async def _file_sizes(files: FileCalls, folder: str) -> dict[str, int | None]:
    """Return the sizes of the files in a directory; nothing where it cannot be listed."""
    try:
        found = await files.ls(folder)
    except ToolFailure:
        return {}
    return {each["path"]: each.get("size") for each in found.entries or ()}
