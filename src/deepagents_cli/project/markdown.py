"""Find the agents and commands that a person and a project keep as Markdown files with front matter."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

from deepagents._values import valueclass
from deepagents.middleware.skills.parse import Unreadable, read_header, split_skill
from deepagents_cli.approval.guarded import kind_of
from deepagents_cli.project.project import Folder, Project, read_resolved
from deepagents_cli.text import one_line, reason_of

_MOST_ENTRIES: Final = 2_000
"""Names in one folder and below, so that none delays the start without end."""
_LONGEST: Final = 1 << 17
"""Bytes."""
_NAME: Final = re.compile(r"\w[\w.-]{0,63}(:\w[\w.-]{0,63}){0,3}")

Made = TypeVar("Made")
Parse: TypeAlias = "Callable[[MarkdownFile], tuple[Made, list[str]]]"


@valueclass
class MarkdownFile:
    """A file with front matter; `trusted` are those of the person."""

    name: str
    path: Path
    fields: Mapping[str, Any]
    body: str
    trusted: bool

    def text(self, field: str) -> str:
        """Return a field as one line; `""` where it is not text or missing."""
        value = self.fields.get(field)
        return one_line(value) if isinstance(value, str) else ""


def find_files(project: Project, kind: str, parse: Parse[Made]) -> tuple[dict[str, Made], list[str]]:
    """Return what the files of a kind, `agents` or `commands`, describe, by name; and what is wrong.

    One of the directory replaces one of the repository, and that one of the person.
    """
    found: dict[str, Made] = {}
    notices: list[str] = []
    for folder in project.folders(kind):
        trusted = folder.place.resolve() == project.home.resolve()
        for name, path in _list_files(folder.path, notices):
            try:
                read = _read(kind, name, path, folder, trusted=trusted)
                made, problems = parse(read)
            # No file of somebody else keeps the program from starting.
            except (OSError, ValueError, RecursionError) as error:
                notices.append(one_line(f"{path} is not used: {reason_of(error)}"))
                continue
            notices += [one_line(f"{path}: {problem}") for problem in problems]
            found[read.name] = made
    return found, notices


def names_in(value: object) -> list[str]:
    """Return names that are a list, or a text with commas or blanks; brackets belong to a name."""
    if isinstance(value, list):
        return [str(each) for each in cast("list[object]", value)]
    return re.findall(r"[^\s,(]+(?:\([^)]*\))?", value) if isinstance(value, str) else []


def _list_files(folder: Path, notices: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield the Markdown files below a folder, by names such as `dir:name`; links to folders are left out."""
    waiting, left = deque([(folder, "")]), _MOST_ENTRIES
    while waiting and left:
        place, prefix = waiting.popleft()
        try:
            with os.scandir(place) as entries:
                listed = sorted(islice(entries, left), key=lambda each: each.name)
        except OSError:
            continue
        left -= len(listed)
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry), f"{prefix}{entry.name}:"))
            elif entry.name.endswith(".md"):
                yield prefix + entry.name.removesuffix(".md"), Path(entry)
    if not left:
        notices.append(one_line(f"{folder} holds more than {_MOST_ENTRIES:,} names; the rest is left out"))


def _read(kind: str, name: str, path: Path, folder: Folder, *, trusted: bool) -> MarkdownFile:
    real = path.resolve()
    text = read_resolved(real, folder.place.resolve(), _LONGEST).decode()
    if kind_of(real.as_posix(), writes=False) == "secrets":
        raise Unreadable("it leads to a file that looks like a secret")
    if folder.plugin:
        text = folder.plugin.fill(text)
    fields: Mapping[str, Any] = {}
    if text.lstrip("\ufeff \r\n").startswith("---"):
        header, text = split_skill(text)
        fields = read_header(header) if header.strip() else {}
    # An agent is called what it says; a command, what is typed: the name of its file.
    given = fields.get("name") if kind == "agents" else None
    name = given if isinstance(given, str) and given else name
    name = f"{folder.plugin.name}:{name}" if folder.plugin else name
    if not _NAME.fullmatch(name):
        raise Unreadable(f"{name!r} is not a name; write letters, digits, '-' and '_'")
    return MarkdownFile(name, path, fields, text.strip(), trusted)
