"""Complete `/commands`, and `@files` of a directory by some of their letters."""

from __future__ import annotations

import os
import re
from asyncio import get_running_loop
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from itertools import islice
from pathlib import Path
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from deepagents_cli.text import one_line
from deepagents_cli.views.chat.input.files import FileIndex

_MENTION: Final = re.compile(r"(?:^|\s)@(?P<typed>\"[^\"]*|[^\s\"]*)$")


class ChatCompleter(Completer):
    """Offers the commands at the beginning of a text, files behind an `@`, and paths in a line behind `!`.

    `again` is called when more files are known than were offered.
    """

    def __init__(
        self,
        commands: Callable[[], Mapping[str, str]],
        files: FileIndex,
        directory: Path,
        again: Callable[[], None],
    ) -> None:
        self._commands = commands
        self._files = files
        self._directory = directory
        self._again = again
        self._news = 0

    def move(self, directory: Path) -> None:
        """Offer the files of this directory from now on, also where those of another are offered already."""
        self._files, self._directory = FileIndex(directory), directory
        self._tell()

    def _tell(self) -> None:
        self._news += 1
        self._again()

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,
        done: Callable[[], None] | None = None,
    ) -> Iterable[Completion]:
        """Yield what can stand at the cursor; `done` is called by another thread when that is more."""
        before = document.text_before_cursor
        if before.startswith("!"):
            # While one types, nothing is offered: shells do not, either.
            if complete_event.completion_requested:
                yield from complete_path(self._directory, before[1:])
        elif before.startswith("/") and not re.search(r"\s", before):
            yield from self._complete_command(before[1:])
        elif found := _MENTION.search(before):
            yield from self._complete_file(found["typed"], done)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the same, found in another thread: the next key does not wait."""
        loop, context = get_running_loop(), copy_context()

        def done() -> None:
            # The screen may be gone by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._tell, context=context)

        def complete() -> Sequence[Completion]:
            return list(self.get_completions(document, complete_event, done))

        known = -1
        found: Sequence[Completion] = ()
        # While this is at work it cannot be begun again, and what it found may be older than the news.
        while known != self._news:
            known = self._news
            found = await loop.run_in_executor(None, complete)
        for each in found:
            yield each

    def _complete_command(self, typed: str) -> Iterable[Completion]:
        for name, description in sorted(self._commands().items()):
            if name.startswith(typed):
                yield Completion(f"{name} ", -len(typed), display=f"/{name}", display_meta=description)

    def _complete_file(self, typed: str, done: Callable[[], None] | None) -> Iterable[Completion]:
        for path in self._files.search(typed.removeprefix('"'), done=done):
            quote = '"' if " " in path else ""
            # A directory is only half of what is meant, and is not offered again where it is typed.
            if not path.endswith("/"):
                yield Completion(f"{quote}{path}{quote} ", -len(typed), display=path)
            elif f"{quote}{path}" != typed:
                yield Completion(f"{quote}{path}", -len(typed), display=path)


_WORD: Final = re.compile(r"\"[^\"]*\Z|'[^']*\Z|(?:\\.|[^\s\\;|&<>()=\"'])*\Z", re.DOTALL)
_SPECIAL: Final = re.compile(r"[^\w@%+:,./~-]")
_MOST_LOOKED_AT: Final = 10_000
_MOST: Final = 50


def complete_path(directory: Path, typed: str) -> Iterator[Completion]:
    """Yield the paths with which the last word of a command can go on, seen from a directory."""
    found = _WORD.search(typed)
    word = found[0] if found else ""
    quote = word[:1] if word[:1] in ("'", '"') else ""
    path = word[1:] if quote else re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL)
    above, _, name = path.rpartition("/")
    # "/" alone is the root, and no word at all is the directory.
    shown = f"{above}/" if "/" in path else ""
    is_home = shown.startswith("~/") and not quote
    place = Path.home() / shown[2:] if is_home else directory / shown
    for each in _find_names(place, name):
        whole, ends = f"{shown}{each}", not each.endswith("/")
        text = f"{quote}{whole}{quote * ends}" if quote else _SPECIAL.sub(r"\\\g<0>", whole)
        yield Completion(f"{text}{' ' * ends}", -len(word), display=each)


def _find_names(place: Path, begun: str) -> list[str]:
    """Return the names in a directory that begin so, a directory's with a slash; hidden ones where asked."""
    try:
        with os.scandir(place) as entries:
            names = [
                f"{each.name}/" if each.is_dir() else each.name
                for each in islice(entries, _MOST_LOOKED_AT)
                if each.name.startswith(begun) and (begun.startswith(".") or not each.name.startswith("."))
            ]
    except (OSError, ValueError):
        return []
    # What a terminal cannot show as it is, is not offered.
    return sorted(each for each in names if one_line(each) == each)[:_MOST]
