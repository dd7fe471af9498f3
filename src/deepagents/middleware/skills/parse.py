"""Parse a SKILL.md into metadata, or into a sentence that says why it is skipped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, Final, TypeAlias, cast

from deepagents._paths import name as last_part
from deepagents._paths import parent
from deepagents._values import field, valueclass
from deepagents.middleware.skills.state import SkillMetadata

MAX_SKILL_FILE_SIZE: Final = 10 * 1024 * 1024
"""Bytes that a SKILL.md may have."""
MAX_SKILL_NAME_LENGTH: Final = 64
MAX_SKILL_DESCRIPTION_LENGTH: Final = 1024
MAX_SKILL_COMPATIBILITY_LENGTH: Final = 500
MAX_HEADER_LENGTH: Final = 65_536
_MAX_DEPTH: Final = 20
_MAX_LICENSE_LENGTH: Final = 200
_MAX_PATH_LENGTH: Final = 1024
_MAX_KEPT_NAME: Final = 1024
_MAX_TOOLS_LENGTH: Final = 1024
_MAX_METADATA_LENGTH: Final = 4096

INCLUDE: Final = "include_tools"
_MARKER: Final = "---"
_NULLS: Final = ("", "~", "null", "Null", "NULL")
_PAIR: Final = re.compile(r"^([ \t]*)((?:- )?[A-Za-z][\w-]*:[ \t]+)(\S.*(?:\n\1[ \t]+\S.*)*)$", re.MULTILINE)
_STRUCTURED: Final = ("|", ">", "[", "{")
_NEEDS_QUOTES: Final = re.compile(r""":(\s|$)|^[@`%&*!?,"'\]}#-]""")
_NUMBER_OR_TRUTH: Final = re.compile(r"[-+]?\d+(\.\d+)?|true|false", re.IGNORECASE)

Value: TypeAlias = "str | list[Value] | dict[str, Value] | None"


class Unreadable(ValueError):
    """A SKILL.md cannot be read; the text says why."""


@valueclass
class Parsed:
    """A skill or none, and a sentence for each problem."""

    skill: SkillMetadata | None
    problems: Sequence[str] = ()


@valueclass
class _Fields:
    """The fields of one file, and the problems that reading them found."""

    path: str
    values: Mapping[str, Any]
    problems: list[str] = field(default_factory=list[str])

    def get_text(self, name: str, limit: int) -> str | None:
        """Return a field as text, cut to a limit; `None` where it is blank, null or missing."""
        value = self.values.get(name)
        if isinstance(value, (dict, list)):
            self.report(f"{name!r} is not text and is left out")
            return None
        text = str(value or "").strip()
        if len(text) > limit:
            self.report(f"{name!r} has {len(text)} characters, over the limit of {limit}, and is cut")
        return text[:limit].rstrip() or None

    def report(self, problem: str) -> None:
        """Add a problem."""
        self.problems.append(f"{self.path}: {problem}.")


def parse_skill(content: bytes | None, path: str) -> Parsed:
    """Parse a SKILL.md; `path` is its own path, whose directory should have the skill's name."""
    if len(path) > _MAX_PATH_LENGTH:
        reason = f"its path has {len(path)} characters, over the limit of {_MAX_PATH_LENGTH}"
        return _skip(f"{path[:_MAX_PATH_LENGTH]}...", reason)
    # A file of somebody else must not end a run, so a bug in here costs one skill only.
    with suppress(Exception):
        try:
            header, _ = split_skill(_decode(content))
            return _read_fields(_Fields(path, read_header(header)))
        except Unreadable as error:
            return _skip(path, str(error))
    return _skip(path, "it cannot be read")


def body_of(content: bytes | None) -> str | None:
    """Return the text behind the front matter, `None` for a file that cannot be shown."""
    try:
        return split_skill(_decode(content))[1]
    except Unreadable:
        return None


def split_skill(text: str) -> tuple[str, str]:
    """Split a SKILL.md into front matter and body.

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
    return "\n".join(lines[start + 1 : end]), "\n".join(lines[end + 1 :]).strip("\n")


def _skip(path: str, reason: str) -> Parsed:
    return Parsed(None, [f"{path}: skill skipped: {reason}."])


def _decode(content: bytes | None) -> str:
    if content is None:
        raise Unreadable("it has no content")
    if len(content) > MAX_SKILL_FILE_SIZE:
        raise Unreadable(f"it is over the limit of {MAX_SKILL_FILE_SIZE} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Unreadable("it is not UTF-8") from error


def read_header(header: str) -> Mapping[str, Any]:
    """Read front matter; where it is not YAML, values with colons are taken as they stand."""
    if len(header) > MAX_HEADER_LENGTH:
        raise Unreadable(f"its front matter has {len(header)} characters, more than {MAX_HEADER_LENGTH}")
    # Importing it takes long, and many projects have no such files.
    import yaml

    try:
        found = _load_yaml(header)
    except yaml.YAMLError as problem:
        try:
            found = _load_yaml(_PAIR.sub(_quote_value, header))
        except yaml.YAMLError:
            raise Unreadable(f"its front matter is not YAML: {_describe(problem)}") from problem
    if not isinstance(found, dict):
        raise Unreadable("its front matter is not a mapping of names to values")
    return found


def _load_yaml(text: str) -> Value:
    import yaml

    # It makes text, lists and mappings only, whatever a tag says. The C version is ten times faster.
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    depth = 0
    # Aliases and nesting are checked on the events first: aliases can stand for gigabytes, and the
    # loader recurses with nesting.
    for event in cast("Iterator[Any]", yaml.parse(text, Loader=loader)):
        if isinstance(event, yaml.AliasEvent):
            raise Unreadable("its front matter uses YAML aliases, which are not read here")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise Unreadable(f"its front matter is nested too deep, more than {_MAX_DEPTH} levels")
    return _as_value(yaml.load(text, Loader=loader))


def _as_value(loaded: Any) -> Value:
    """Turn null into `None`, and replace characters that no store takes: NUL and half surrogates."""
    if isinstance(loaded, dict):
        pairs = cast("dict[Any, Any]", loaded).items()
        return {str(_as_value(key)): _as_value(value) for key, value in pairs}
    if isinstance(loaded, list):
        return [_as_value(each) for each in cast("list[Any]", loaded)]
    if loaded in _NULLS:
        return None
    return str(loaded).replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quote_value(pair: re.Match[str]) -> str:
    """Quote a plain value that YAML would trip over, with the lines that continue it."""
    value = " ".join(line.strip() for line in pair[3].split("\n"))
    is_quoted = len(value) > 1 and value[0] in "\"'" and value[0] == value[-1]
    if is_quoted or value.startswith(_STRUCTURED) or not _NEEDS_QUOTES.search(value):
        return pair[0]
    return pair[1] + pair[2] + json.dumps(value, ensure_ascii=False)


def _describe(error: Exception) -> str:
    mark: Any = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"{problem} in line {mark.line + 1}" if mark else " ".join(str(problem).split())


def _read_fields(fields: _Fields) -> Parsed:
    name = fields.get_text("name", _MAX_KEPT_NAME)
    description = fields.get_text("description", MAX_SKILL_DESCRIPTION_LENGTH)
    if name is None or description is None:
        missing = [key for key, value in (("'name'", name), ("'description'", description)) if value is None]
        skipped = _skip(fields.path, f"it has no {' and '.join(missing)}")
        return Parsed(None, [*fields.problems, *skipped.problems])
    if problem := _find_name_problem(name, last_part(parent(fields.path))):
        fields.report(f"the name {name!r} {problem}")
    skill = SkillMetadata(
        path=fields.path,
        name=name,
        description=description,
        license=fields.get_text("license", _MAX_LICENSE_LENGTH),
        compatibility=fields.get_text("compatibility", MAX_SKILL_COMPATIBILITY_LENGTH),
        metadata=_read_metadata(fields),
        allowed_tools=_read_names(fields, "allowed-tools", fields.values.get("allowed-tools")),
    )
    return Parsed(skill, fields.problems)


def _find_name_problem(name: str, directory: str) -> str | None:
    if len(name) > MAX_SKILL_NAME_LENGTH:
        return f"has {len(name)} characters, over the limit of {MAX_SKILL_NAME_LENGTH}"
    if not all(each == "-" or each.isdigit() or each.islower() for each in name):
        return "may hold lowercase letters, digits and hyphens only"
    if name.startswith("-") or name.endswith("-") or "--" in name:
        return "begins or ends with a hyphen, or has two in a row"
    return None if name == directory else f"is not the name of its directory, {directory!r}"


def _read_metadata(fields: _Fields) -> dict[str, str]:
    given = fields.values.get("metadata")
    if not isinstance(given, dict):
        if given:
            fields.report("'metadata' is not a mapping and is left out")
        return {}
    values = cast("dict[str, Any]", given)
    texts = {key: str(each) for key, each in values.items() if each is not None and key != INCLUDE}
    kept: dict[str, str] = {}
    room = _MAX_METADATA_LENGTH
    for key, text in texts.items():
        if len(key) + len(text) <= room:
            room -= len(key) + len(text)
            kept[key] = text
    if left_out := len(texts) - len(kept):
        fields.report(
            f"'metadata' has more than {_MAX_METADATA_LENGTH} characters; {left_out} of its entries left out"
        )
    if names := _read_names(fields, INCLUDE, values.get(INCLUDE)):
        kept[INCLUDE] = " ".join(dict.fromkeys(names))
    return kept


def _read_names(fields: _Fields, key: str, value: Any) -> list[str]:
    """Read names of tools, as text or as a list, and keep as many as have room."""
    names: list[str] = []
    if isinstance(value, str) and not _NUMBER_OR_TRUTH.fullmatch(value.strip()):
        names = split_tools(value)
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        texts = [each.strip() for each in items if isinstance(each, str)]
        names = [text for text in texts if text and not _NUMBER_OR_TRUTH.fullmatch(text)]
        if len(names) < len(items):
            fields.report(f"{key!r} holds what is not a name of a tool, which is left out")
    elif value is not None:
        fields.report(f"{key!r} must be names of tools, and is left out")
    lengths = accumulate(map(len, names))
    kept = [name for name, length in zip(names, lengths, strict=True) if length <= _MAX_TOOLS_LENGTH]
    if len(kept) < len(names):
        fields.report(
            f"{key!r} names more than {_MAX_TOOLS_LENGTH} characters of tools; "
            f"{len(names) - len(kept)} of {len(names)} are left out"
        )
    return kept


def split_tools(text: str) -> list[str]:
    """Split names at blanks and commas, but not inside brackets: `Bash(git add:*)` is one."""
    depth, start, names = 0, 0, list[str]()
    for at, each in enumerate(text):
        depth = max(depth + (each in "([{") - (each in ")]}"), 0)
        if depth == 0 and (each.isspace() or each == ","):
            names.append(text[start:at])
            start = at + 1
    names.append(text[start:])
    return [name for name in names if name] if depth == 0 else text.replace(",", " ").split()
