"""The front matter of a SKILL.md: found, and read as YAML whose values stay text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from deepagents.middleware.skills.plain_yaml import Oversized, Value, load

MOST_CHARACTERS: Final = 65_536
_MARKER: Final = "---"
_PAIR: Final = re.compile(r"(\s*(?:- )?[A-Za-z][\w-]*:[ \t]+)(\S.*)")
_STRUCTURED: Final = ("|", ">", "[", "{")
_TROUBLE: Final = re.compile(r""":(\s|$)|^[@`%&*!?,"'\]}#-]""")


class Unreadable(ValueError):
    """The front matter cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A SKILL.md in two: its front matter and what follows."""

    header: str
    body: str


def split(text: str) -> Parts:
    """Split a SKILL.md; a byte order mark, blank lines before and a missing last newline do no harm.

    Raises:
        Unreadable: when there is no front matter, or no end of it.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if lines[start].rstrip() != _MARKER:
        raise Unreadable("it does not begin with front matter between two lines '---'")
    end = next((at for at in range(start + 1, len(lines)) if lines[at].rstrip() == _MARKER), None)
    if end is None:
        raise Unreadable("its front matter has no closing line '---'")
    return Parts("\n".join(lines[start + 1 : end]), "\n".join(lines[end + 1 :]).strip("\n"))


def read(header: str) -> Mapping[str, Any]:
    """Read front matter; where it is no YAML, values are taken as they stand, with their colons.

    Raises:
        Unreadable: when that does not help either, or it is no mapping.
    """
    if len(header) > MOST_CHARACTERS:
        raise Unreadable(f"its front matter has {len(header)} characters, more than {MOST_CHARACTERS}")
    try:
        found = _loaded(header)
    except Oversized as error:
        raise Unreadable(f"its front matter cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise Unreadable("its front matter is no mapping of names to values")
    return found


def _loaded(header: str) -> Value:
    try:
        return load(header)
    except yaml.YAMLError as problem:
        try:
            return load(_quoted(header))
        except yaml.YAMLError:
            raise Unreadable(f"its front matter is no YAML: {_said(problem)}") from problem


def _quoted(header: str) -> str:
    """Put in quotes each plain value that YAML would trip over, with the lines that go on with it."""
    made: list[str] = []
    value: list[str] = []
    for line in [*header.split("\n"), "---"]:
        if value and line.strip() and _indent(line) > _indent(value[0]):
            value.append(line)
            continue
        made += _mended(value)
        value = [line] if _PAIR.fullmatch(line) else []
        made += [] if value else [line]
    return "\n".join(made[:-1])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _mended(lines: Sequence[str]) -> Sequence[str]:
    pair = _PAIR.fullmatch(lines[0]) if lines else None
    if pair is None:
        return lines
    value = " ".join([pair[2].strip(), *(line.strip() for line in lines[1:])])
    quoted = len(value) > 1 and value[0] in "\"'" and value[0] == value[-1]
    if quoted or value.startswith(_STRUCTURED) or not _TROUBLE.search(value):
        return lines
    return [pair[1] + json.dumps(value, ensure_ascii=False)]


def _said(error: yaml.YAMLError) -> str:
    mark: Any = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"{problem} in line {mark.line + 1}" if mark else " ".join(str(problem).split())
