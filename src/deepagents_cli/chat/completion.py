"""Complete `/commands` and `@files` in the input line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from deepagents_cli.chat.files import Files

_MENTION: Final = re.compile(r"(?:^|\s)@(?P<typed>\"[^\"]*|[^\s\"]*)$")


class ChatCompleter(Completer):
    """Offers the commands at the beginning of a text, and files behind an `@`."""

    def __init__(self, commands: Callable[[], Mapping[str, str]], files: Files) -> None:
        self._commands = commands
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what can stand at the cursor."""
        before = document.text_before_cursor
        if before.startswith("/") and not re.search(r"\s", before):
            yield from self._complete_command(before[1:])
        elif found := _MENTION.search(before):
            yield from self._complete_file(found["typed"])

    def _complete_command(self, typed: str) -> Iterable[Completion]:
        for name, description in sorted(self._commands().items()):
            if name.startswith(typed):
                yield Completion(f"{name} ", -len(typed), display=f"/{name}", display_meta=description)

    def _complete_file(self, typed: str) -> Iterable[Completion]:
        for path in self._files.search(typed.removeprefix('"')):
            text = f'"{path}"' if " " in path else path
            yield Completion(text if path.endswith("/") else f"{text} ", -len(typed), display=path)
