"""Keep what tools have returned and what models have thought, so that all of it can be read later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from deepagents._values import recordclass
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.events import (
    Event,
    Reasoning,
    SubagentFinished,
    SubagentStarted,
    Token,
    ToolCalled,
    ToolFinished,
)
from deepagents.middleware.filesystem.offload import OFFLOADED_TO
from deepagents.observe import read_reasoning
from deepagents_cli.protocol import Whole
from deepagents_cli.session.display.lines import call_line
from deepagents_cli.text import one_line

THOUGHT: Final = "reasoning"
_MOST: Final = 1_000_000
"""Characters of one that is shown; of a longer one, the beginning and the end."""
_MOST_IN_ALL: Final = 8_000_000
"""Characters of all that are kept; the oldest go first."""


@recordclass
class Kept:
    """A text that comes in pieces, with its title and its size in characters."""

    title: str
    pieces: list[str]
    size: int
    file: str | None = None
    """Where all of it is, if it was too large for the model."""


class Results:
    """What was returned and thought in a thread, the last at the end; the oldest are dropped."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._kept: deque[Kept] = deque()
        self._size = 0
        self._titles: dict[str, str] = {}
        self._thinking: dict[str | None, Kept] = {}

    def recall(self, messages: Iterable[BaseMessage]) -> None:
        """Take what a thread holds that is opened again."""
        for message in messages:
            if isinstance(message, AIMessage):
                self.add(THOUGHT, read_reasoning(message))
                for call in message.tool_calls:
                    title = call_line(call["name"], call["args"], directory=self._directory)
                    self._titles[call["id"] or ""] = title
            elif isinstance(message, ToolMessage):
                title = self._titles.pop(message.tool_call_id, message.name or "")
                self.add(title, message.text, message.additional_kwargs.get(OFFLOADED_TO))

    def take(self, event: Event, line: str | None) -> None:
        """Take an event; `line` is its call in one line."""
        match event:
            case Reasoning(agent=agent, text=text):
                thought = self._thinking.get(agent)
                if thought is None:
                    thought = self._thinking[agent] = self.add(_whose(agent, THOUGHT), text)
                else:
                    self._extend(thought, text)
                return
            case ToolCalled(call_id=number, name=name):
                self._titles[number] = _whose(event.agent, line or name)
            case SubagentStarted(call_id=number, name=name, task=task):
                self._titles[number] = _whose(event.agent, f"{event.label or name} {one_line(task)}")
            case ToolFinished(call_id=number, name=name, text=text, saved_to=file):
                self.add(self._titles.pop(number, name), text, file)
            case SubagentFinished(call_id=number, name=name, text=text):
                self.add(self._titles.pop(number, name), text)
            case Token(text=""):
                return
            case _:
                pass
        self._thinking.pop(getattr(event, "agent", None), None)

    def add(self, title: str, text: str, file: str | None = None) -> Kept:
        """Keep a text, or what a file holds that it is about."""
        kept = Kept(title, [], 0, file)
        if text or title != THOUGHT:
            self._kept.append(kept)
            self._extend(kept, _shorten(text))
        return kept

    async def find(self, back: int, backend: FilesystemBackend) -> Whole:
        """Return the last one, or one so many before it; one with an empty title where there is none."""
        if back >= len(self._kept):
            return Whole("", "", back)
        kept = self._kept[-1 - back]
        text = "".join(kept.pieces)
        if kept.file is not None:
            (found,) = await backend.adownload_files([kept.file])
            if found.content is None:
                text = f"{text}\n\n[{kept.file} cannot be read any more: {found.error}]"
            else:
                text = found.content.decode("utf-8", "replace")
        return Whole(kept.title, _shorten(text), back, len(self._kept))

    def _extend(self, kept: Kept, text: str) -> None:
        if kept.size < _MOST:
            kept.pieces.append(text)
            # An empty one takes room too.
            kept.size += len(text) + 1
            self._size += len(text) + 1
        while self._size > _MOST_IN_ALL:
            dropped = self._kept.popleft()
            self._size -= dropped.size
            # Nothing is added to it any more.
            dropped.size = _MOST


def _whose(agent: str | None, title: str) -> str:
    return title if agent is None else f"{one_line(agent)} | {title}"


def _shorten(text: str) -> str:
    left_out = len(text) - _MOST
    if left_out <= 0:
        return text
    half = _MOST // 2
    return f"{text[:half]}\n\n[{left_out:,} characters are left out here]\n\n{text[-half:]}"
