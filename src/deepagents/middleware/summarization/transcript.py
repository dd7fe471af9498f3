"""Messages as text that people and grep can read, and that is the same messages again when it is parsed.

A message is a heading, one line of JSON, and the texts that the JSON refers to, each as it is in a fence of
its own. Only a text with NUL or half characters has escapes, and its fence says so.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, messages_from_dict

from deepagents.middleware.summarization.media import Media, original

FetchMedia = Callable[[str], bytes]
"""Returns the bytes of a file that a transcript names."""

_TEXT: Final = "$text"
_MEDIA: Final = "$media"
_BYTES: Final = "$bytes"
_LITERAL: Final = "$literal"
_LONGEST_IN_LINE: Final = 120
_LONGEST_LABEL: Final = 100
_ALWAYS_OUTSIDE: Final = re.compile(r"content|content\.\d+(?:\.text)?")
_UNFIT = re.compile("[\0\ud800-\udfff]")
_TO_ESCAPE = re.compile("[\0\\\\\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")
_FENCES = re.compile("`+")
_OPENING = re.compile(r"(?P<fence>`{3,})(?:json|text)(?P<escaped>-escaped)?(?: [^\n]*)?\n")
_HEADING = re.compile(r"### (?P<type>\w+)\n\n")


def written(messages: Sequence[BaseMessage], media: Media, unsaved: Collection[str] = ()) -> str:
    """Write messages down; media that are not in `unsaved` are named, the others stand there whole."""
    return "".join(_Writer(media, unsaved).message(each) for each in messages)


def parse_messages(text: str, fetch: FetchMedia | None = None) -> list[BaseMessage]:
    """Return the messages of a text that `written` made; without `fetch`, media stay names of files.

    Raises:
        ValueError: when it is no such text.
    """
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(text):
        heading = _HEADING.match(text, at)
        if heading is None:
            raise ValueError(f"a message should begin here: {text[at : at + 40]!r}")
        fences = list(_fences(text, heading.end()))
        data = _Reader([each for each, _ in fences[1:]], fetch).value(json.loads(fences[0][0]))
        found.append({"type": heading["type"], "data": data})
        at = fences[-1][1]
    return messages_from_dict(found)


@dataclass(slots=True)
class _Writer:
    media: Media
    unsaved: Collection[str]
    texts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def message(self, message: BaseMessage) -> str:
        self.texts = []
        data = self._value(message.model_dump(exclude_defaults=True, warnings=False), "")
        line = json.dumps(data, ensure_ascii=False, default=repr)
        fences = [_fenced("json", line), *(_fenced("text", text, f" {label}") for label, text in self.texts)]
        return f"### {message.type}\n\n{''.join(fences)}"

    def _value(self, value: Any, path: str) -> Any:
        match value:
            case str():
                return self._text(value, path)
            case bytes():
                return {_BYTES: base64.b64encode(value).decode()}
            case dict():
                return self._mapping(cast("dict[Any, Any]", value), path)
            case list() | tuple():
                items = cast("Sequence[Any]", value)
                return [self._value(each, f"{path}.{number}") for number, each in enumerate(items)]
            case _:
                return value

    def _mapping(self, holder: dict[Any, Any], path: str) -> dict[str, Any]:
        found = {str(key): self._at(holder, key, f"{path}.{key}".lstrip(".")) for key in holder}
        return {_LITERAL: found} if any(key.startswith("$") for key in found) else found

    def _at(self, holder: dict[Any, Any], key: Any, path: str) -> Any:
        payload = self.media.at(holder, key)
        if payload is None or payload.name in self.unsaved:
            return self._value(holder[key], path)
        return {_MEDIA: self.media.path(payload), "as": payload.coding, "before": payload.before}

    def _text(self, text: str, path: str) -> Any:
        short = "\n" not in text and len(text) <= _LONGEST_IN_LINE
        if short and not (text and _ALWAYS_OUTSIDE.fullmatch(path)):
            return text
        label = re.sub(r"[^\w.-]", "_", path)[:_LONGEST_LABEL]
        self.texts.append((label, text))
        return {_TEXT: len(self.texts)}


@dataclass(frozen=True, slots=True)
class _Reader:
    texts: Sequence[str]
    fetch: FetchMedia | None

    def value(self, value: Any) -> Any:
        match value:
            case dict():
                return self._mapping(cast("dict[str, Any]", value))
            case list():
                return [self.value(each) for each in cast("list[Any]", value)]
            case _:
                return value

    def _mapping(self, value: dict[str, Any]) -> Any:
        match value:
            case {"$text": int(number)}:
                return self.texts[number - 1]
            case {"$media": path, "as": coding, "before": before}:
                return original(self.fetch(path), coding, before) if self.fetch else f"{before}{path}"
            case {"$bytes": encoded}:
                return base64.b64decode(encoded)
            case {"$literal": literal}:
                return self._values(literal)
            case _:
                return self._values(value)

    def _values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self.value(each) for key, each in values.items()}


def _fenced(kind: str, text: str, label: str = "") -> str:
    fence = "`" * max(3, 1 + max(map(len, _FENCES.findall(text)), default=0))
    if _UNFIT.search(text):
        kind, text = f"{kind}-escaped", _TO_ESCAPE.sub(_escape, text)
    return f"{fence}{kind}{label}\n{text}\n{fence}\n\n"


def _fences(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield what stands in each fence, and where what follows it begins."""
    while opening := _OPENING.match(text, at):
        closing = f"\n{opening['fence']}\n\n"
        start = opening.end()
        stop = text.index(closing, start)
        inside = text[start:stop]
        at = stop + len(closing)
        yield (_ESCAPED.sub(_unescape, inside) if opening["escaped"] else inside), at


def _escape(found: re.Match[str]) -> str:
    return "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}"


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else "\\"
