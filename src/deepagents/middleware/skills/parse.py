"""A SKILL.md becomes metadata, or a sentence that says why not; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, cast

from deepagents._paths import name as last_part
from deepagents._paths import parent
from deepagents.middleware.skills.frontmatter import Unreadable, read, split
from deepagents.middleware.skills.state import SkillMetadata

MAX_SKILL_FILE_SIZE: Final = 10 * 1024 * 1024
"""Bytes that a SKILL.md may have."""
MAX_SKILL_NAME_LENGTH: Final = 64
MAX_SKILL_DESCRIPTION_LENGTH: Final = 1024
MAX_SKILL_COMPATIBILITY_LENGTH: Final = 500
MAX_LICENSE_LENGTH: Final = 200
MAX_PATH_LENGTH: Final = 1024
MAX_TOOLS_LENGTH: Final = 1024
"""Characters that the names of tools may have together."""
MAX_METADATA_LENGTH: Final = 4096
"""Characters that all metadata may have together."""
_MOST_KEPT_OF_A_NAME: Final = 1024
_INCLUDE: Final = "include_tools"
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"
_NUMBER_OR_TRUTH: Final = re.compile(r"[-+]?\d+(\.\d+)?|true|false", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A skill, or none, and a sentence for each thing that is wrong with it."""

    skill: SkillMetadata | None
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """The fields of one file, and the sentences about them."""

    path: str
    fields: Mapping[str, Any]
    problems: list[str] = field(default_factory=list[str])

    def text(self, name: str) -> str | None:
        """Return a field as text without blanks around it; what is blank or null is missing."""
        value = self.fields.get(name)
        if value is not None and isinstance(value, (dict, list)):
            self.report(f"{name!r} is no text and is left out")
            return None
        return str(value).strip() or None if value is not None else None

    def short_text(self, name: str, limit: int) -> str | None:
        """Return a field cut to so many characters."""
        value = self.text(name)
        if value is None or len(value) <= limit:
            return value
        self.report(f"{name!r} has {len(value)} characters, over the limit of {limit}, and is cut")
        return value[:limit].rstrip()

    def report(self, problem: str) -> None:
        """Note what is wrong."""
        self.problems.append(f"{self.path}: {problem}.")


def parse_skill(content: bytes | None, path: str) -> Parsed:
    """Parse a SKILL.md; `path` is its own, whose directory the skill should be named after."""
    if len(path) > MAX_PATH_LENGTH:
        why = f"its path has {len(path)} characters, over the limit of {MAX_PATH_LENGTH}"
        return _dropped(f"{path[:MAX_PATH_LENGTH]}...", why)
    with suppress(Exception):
        return _read(content, path)
    return _dropped(path, "it cannot be read")


def _read(content: bytes | None, path: str) -> Parsed:
    try:
        return _parsed(_Reading(path, read(split(_text(content)).header)))
    except Unreadable as error:
        return _dropped(path, str(error))


def _text(content: bytes | None) -> str:
    if content is None:
        raise Unreadable("it has no content")
    if len(content) > MAX_SKILL_FILE_SIZE:
        raise Unreadable(f"it has {len(content)} bytes, over the limit of {MAX_SKILL_FILE_SIZE}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Unreadable("it is not UTF-8") from error


def body_of(content: bytes | None) -> str | None:
    """Return what follows the front matter, `None` for a file that cannot be shown."""
    try:
        return split(_text(content)).body
    except Unreadable:
        return None


def _dropped(path: str, why: str) -> Parsed:
    return Parsed(None, [f"{path}: skill skipped: {why}."])


def _parsed(reading: _Reading) -> Parsed:
    name = reading.short_text("name", _MOST_KEPT_OF_A_NAME)
    description = reading.short_text("description", MAX_SKILL_DESCRIPTION_LENGTH)
    if name is None or description is None:
        missing = " and ".join(
            key for key, value in (("'name'", name), ("'description'", description)) if value is None
        )
        return Parsed(None, [*reading.problems, f"{reading.path}: skill skipped: it has no {missing}."])
    if why := _problem_of_name(name, last_part(parent(reading.path))):
        reading.report(f"the name {name!r} {why}")
    skill = SkillMetadata(
        path=reading.path,
        name=name,
        description=description,
        license=reading.short_text("license", MAX_LICENSE_LENGTH),
        compatibility=reading.short_text("compatibility", MAX_SKILL_COMPATIBILITY_LENGTH),
        metadata=_metadata(reading),
        allowed_tools=_few(reading, "allowed-tools", _allowed_tools(reading)),
    )
    return Parsed(skill, reading.problems)


def _problem_of_name(name: str, directory: str) -> str | None:
    if len(name) > MAX_SKILL_NAME_LENGTH:
        return f"has {len(name)} characters, over the limit of {MAX_SKILL_NAME_LENGTH}"
    if not all(each == "-" or each.isdigit() or each.islower() for each in name):
        return "may hold lowercase letters, digits and hyphens only"
    if name.startswith("-") or name.endswith("-") or "--" in name:
        return "begins or ends with a hyphen, or has two in a row"
    return None if name == directory else f"is not the name of its directory, {directory!r}"


def _metadata(reading: _Reading) -> dict[str, str]:
    given = reading.fields.get("metadata")
    if not isinstance(given, dict):
        if given:
            reading.report("'metadata' is no mapping and is left out")
        return {}
    fields = cast("dict[str, Any]", given)
    found = _kept(reading, {key: value for key, value in fields.items() if key != _INCLUDE})
    if names := _few(reading, _INCLUDE, _included(reading, fields.get(_INCLUDE))):
        found[_INCLUDE] = " ".join(names)
    return found


def _kept(reading: _Reading, fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that have room, as text."""
    found: dict[str, str] = {}
    room = MAX_METADATA_LENGTH
    texts = {key: str(value) for key, value in fields.items() if value is not None}
    for key, text in texts.items():
        if len(key) + len(text) <= room:
            room -= len(key) + len(text)
            found[key] = text
    if left_out := len(texts) - len(found):
        reading.report(
            f"'metadata' has more than {MAX_METADATA_LENGTH} characters; {left_out} of its entries left out"
        )
    return found


def _few(reading: _Reading, field_name: str, names: list[str]) -> list[str]:
    """Return the first names, as many as have room."""
    lengths = accumulate(map(len, names))
    kept = [name for name, length in zip(names, lengths, strict=True) if length <= MAX_TOOLS_LENGTH]
    if len(kept) < len(names):
        reading.report(
            f"{field_name!r} names more than {MAX_TOOLS_LENGTH} characters of tools; "
            f"{len(names) - len(kept)} of {len(names)} are left out"
        )
    return kept


def _included(reading: _Reading, value: Any) -> list[str]:
    match value:
        case None:
            return []
        case list():
            names = [str(each).strip() for each in cast("list[Any]", value) if _is_name(each)]
        case dict():
            names = []
            reading.report("'include_tools' in 'metadata' must be names of tools, and is left out")
        case _:
            names = str(value).replace(",", " ").split()
    return list(dict.fromkeys(names))


def _allowed_tools(reading: _Reading) -> list[str]:
    match reading.fields.get("allowed-tools"):
        case None:
            return []
        case str() as text if not _NUMBER_OR_TRUTH.fullmatch(text.strip()):
            return split_tools(text)
        case list():
            items = cast("list[Any]", reading.fields["allowed-tools"])
            names = [str(each).strip() for each in items if _is_name(each)]
            if len(names) < len(items):
                reading.report("'allowed-tools' holds what is no name of a tool, which is left out")
            return names
        case _:
            reading.report("'allowed-tools' must be names of tools, and is left out")
            return []


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not _NUMBER_OR_TRUTH.fullmatch(value.strip())


def split_tools(text: str) -> list[str]:
    """Split names at blanks and commas, but not inside brackets: `Bash(git add:*)` is one."""
    depth, start, names = 0, 0, list[str]()
    for at, each in enumerate(text):
        depth = max(depth + (each in _OPENING) - (each in _CLOSING), 0)
        if depth == 0 and (each.isspace() or each == ","):
            names.append(text[start:at])
            start = at + 1
    names.append(text[start:])
    return [name for name in names if name] if depth == 0 else text.replace(",", " ").split()
