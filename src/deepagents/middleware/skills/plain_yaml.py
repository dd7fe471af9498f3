"""YAML of which only the shape counts: mappings, lists, text and null; whatever it says, it costs little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import yaml

MOST_DEEP: Final = 20
MOST_VALUES: Final = 65_536
"""Characters and values that a text may stand for, with each alias counted as what it names."""

Value: TypeAlias = "str | list[Value] | dict[str, Value] | None"

_TAGS: Final = "tag:yaml.org,2002:"
_OF_TEXT: Final = frozenset(f"{_TAGS}{name}" for name in ("str", "bool", "int", "float", "timestamp", "null"))
_OF_LISTS: Final = frozenset({f"{_TAGS}seq"})
_OF_MAPPINGS: Final = frozenset({f"{_TAGS}map"})
_NO_TAG: Final = (None, "!")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_PARSER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Oversized(ValueError):
    """The text stands for more than it may; the message says what is too much."""


def load(text: str) -> Value:
    """Read one document; tags make nothing of text, and the last of two equal names counts.

    Raises:
        yaml.YAMLError: for what is no YAML, or uses more of it than text, lists and mappings.
        Oversized: for what is too deep, or stands for too much.
    """
    reading = _Reading()
    for event in cast("Iterator[Any]", yaml.parse(text, Loader=_PARSER)):
        reading.take(event)
    return reading.root


@dataclass(slots=True)
class _Open:
    """A list or mapping that has not ended."""

    value: list[Value] | dict[str, Value]
    anchor: str | None
    before: int
    name: str | None = None
    named: bool = False


@dataclass(slots=True)
class _Reading:
    """What has been read so far; no call goes deeper with the text."""

    root: Value = None
    documents: int = 0
    size: int = 0
    around: list[_Open] = field(default_factory=list[_Open])
    known: dict[str, tuple[Value, int]] = field(default_factory=dict[str, tuple[Value, int]])

    def take(self, event: Any) -> None:
        """Go on with one event of the parser."""
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.SequenceStartEvent():
                self._begin(event, [], _OF_LISTS)
            case yaml.MappingStartEvent():
                self._begin(event, {}, _OF_MAPPINGS)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end(event)
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise _wrong(event, "found a second document")
            case _:
                pass

    def _scalar(self, event: Any) -> None:
        _check_tag(event, _OF_TEXT)
        plain = event.tag is None and event.implicit[0]
        null = event.tag == f"{_TAGS}null" or (plain and event.value in _NULLS)
        value = None if null else _storable(event.value)
        size = self._counted(1 + len(event.value))
        self._remember(event.anchor, value, size)
        self._put(event, value)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self.known:
            raise _wrong(event, f"found undefined alias {event.anchor!r}")
        value, size = self.known[event.anchor]
        self._counted(size)
        self._put(event, value)

    def _begin(self, event: Any, value: list[Value] | dict[str, Value], tags: frozenset[str]) -> None:
        _check_tag(event, tags)
        if len(self.around) >= MOST_DEEP:
            raise Oversized(f"it is nested too deep, more than {MOST_DEEP} levels")
        self.known.pop(event.anchor, None)
        self.around.append(_Open(value, event.anchor, self.size))
        self._counted(1)

    def _end(self, event: Any) -> None:
        ended = self.around.pop()
        self._remember(ended.anchor, ended.value, self.size - ended.before)
        self._put(event, ended.value)

    def _counted(self, size: int) -> int:
        self.size += size
        if self.size > MOST_VALUES:
            raise Oversized(f"it stands for more than {MOST_VALUES} characters and values")
        return size

    def _remember(self, anchor: str | None, value: Value, size: int) -> None:
        if anchor is not None:
            self.known[anchor] = (value, size)

    def _put(self, event: Any, value: Value) -> None:
        if not self.around:
            self.root = value
            return
        inside = self.around[-1]
        if isinstance(inside.value, list):
            inside.value.append(value)
        elif inside.named:
            if inside.name is not None:
                inside.value[inside.name] = value
            inside.named = False
        elif isinstance(value, Mapping | list):
            raise _wrong(event, "found a list or mapping in the place of a name")
        else:
            inside.name, inside.named = value, True


def _check_tag(event: Any, allowed: frozenset[str]) -> None:
    if event.tag not in _NO_TAG and event.tag not in allowed:
        raise _wrong(event, f"found the tag {event.tag.removeprefix(_TAGS)!r}, which is not read here")


def _wrong(event: Any, problem: str) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _storable(text: str) -> str:
    """Replace what no store and no request can hold: null characters and halves of characters."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
