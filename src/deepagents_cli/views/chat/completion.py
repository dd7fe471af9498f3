"""Complete `/commands`, and `@files` of a directory: never outside of it, and never for long."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from itertools import takewhile
from pathlib import Path
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from deepagents_cli.text import one_line
from deepagents_cli.views.chat.paths import complete_path

_MENTION: Final = re.compile(r"(?:^|\s)@(?P<typed>\"[^\"]*|[^\s\"]*)$")
_MOST_FILES: Final = 20_000
_MOST_SECONDS: Final = 1.0
_LONGEST_IGNORE: Final = 1 << 16
_SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
_FRESH_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line of a `.gitignore`, that holds below `base`."""

    base: str
    matches: re.Pattern[str]
    directories: bool
    keeps: bool


class ChatCompleter(Completer):
    """Offers the commands at the beginning of a text, files behind an `@`, and paths in a line behind `!`."""

    def __init__(
        self, commands: Callable[[], Mapping[str, str]], files: FileIndex, directory: Path = Path()
    ) -> None:
        self._commands = commands
        self._files = files
        self._directory = directory

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what can stand at the cursor."""
        before = document.text_before_cursor
        if before.startswith("!"):
            # While one types, nothing is offered: shells do not, either.
            if complete_event.completion_requested:
                yield from complete_path(self._directory, before[1:])
        elif before.startswith("/") and not re.search(r"\s", before):
            yield from self._complete_command(before[1:])
        elif found := _MENTION.search(before):
            yield from self._complete_file(found["typed"])

    def _complete_command(self, typed: str) -> Iterable[Completion]:
        for name, description in sorted(self._commands().items()):
            if name.startswith(typed):
                yield Completion(f"{name} ", -len(typed), display=f"/{name}", display_meta=description)

    def _complete_file(self, typed: str) -> Iterable[Completion]:
        for path in self._files.search(typed.removeprefix('"')):
            quote = '"' if " " in path else ""
            # A directory is only half of what is meant, and is not offered again where it is typed.
            if not path.endswith("/"):
                yield Completion(f"{quote}{path}{quote} ", -len(typed), display=path)
            elif f"{quote}{path}" != typed:
                yield Completion(f"{quote}{path}", -len(typed), display=path)


class FileIndex:
    """The files below a directory, walked anew when the last walk is some seconds old."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._found: list[str] = []
        self._until = -1.0

    def search(self, typed: str, most: int = 50) -> list[str]:
        """Return the files that hold what was typed, those whose name begins with it first."""
        if self._clock() > self._until:
            self._found = list(walk(self._root, self._clock))
            self._until = self._clock() + _FRESH_SECONDS
        wanted = typed.lower()
        found = [path for path in self._found if wanted in path.lower()]
        found.sort(key=lambda path: _rank(path.lower(), wanted))
        return found[:most]


def _rank(path: str, wanted: str) -> tuple[bool, bool, int, str]:
    name = path.rstrip("/").rpartition("/")[2]
    return not path.startswith(wanted), not name.startswith(wanted), path.count("/"), path


def walk(root: Path, clock: Callable[[], float] = time.monotonic) -> Iterator[str]:
    """Yield the paths of files and directories below a root, the upper ones first, within bounds.

    Links to directories are not followed. Names that a terminal could not show as they are, are left out.
    """
    end, found = clock() + _MOST_SECONDS, 0
    waiting: list[tuple[str, tuple[_Pattern, ...]]] = [("", ())]
    for base, above in waiting:
        patterns = (*above, *takewhile(lambda _: clock() <= end, _read_ignore(root, base)))
        for name, is_directory in _entries(root / base):
            path = f"{base}{name}"
            if is_ignored(path, patterns, is_directory=is_directory):
                continue
            found += 1
            if found > _MOST_FILES or clock() > end:
                return
            if is_directory:
                waiting.append((f"{path}/", patterns))
            yield f"{path}/" if is_directory else path


def _entries(place: Path) -> Sequence[tuple[str, bool]]:
    try:
        with os.scandir(place) as entries:
            listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []
    return sorted(
        (name, directory)
        for name, directory in listed
        if name not in _SKIPPED and one_line(name) == name and '"' not in name
    )


def is_ignored(path: str, patterns: Sequence[_Pattern], *, is_directory: bool) -> bool:
    """Tell whether the last pattern that matches leaves a path out."""
    for pattern in reversed(patterns):
        if pattern.directories and not is_directory:
            continue
        if pattern.matches.match(path[len(pattern.base) :]):
            return not pattern.keeps
    return False


def _read_ignore(root: Path, base: str) -> Iterator[_Pattern]:
    place = root / base / ".gitignore"
    if place.is_symlink() or not place.is_file():
        return
    try:
        with place.open("rb") as file:
            text = file.read(_LONGEST_IGNORE).decode("utf-8", "replace")
    except OSError:
        return
    lines = (line.strip() for line in text.splitlines())
    yield from (read_pattern(line, base) for line in lines if line and not line.startswith("#"))


def read_pattern(line: str, base: str = "") -> _Pattern:
    """Read a line of a `.gitignore`."""
    keeps = line.startswith("!")
    line = line.removeprefix("!")
    directories, line = line.endswith("/"), line.rstrip("/")
    anchored, line = "/" in line, line.removeprefix("/")
    # `*` of fnmatch passes slashes, so that too much may be left out of a completion, and nothing else.
    body = translate(line.replace("**/", "*").replace("/**", "/*"))
    return _Pattern(base, re.compile(body if anchored else rf"(?s:.*/)?{body}"), directories, keeps)
