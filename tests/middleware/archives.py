"""Places for archives, and a reader that takes their text back into messages, to compare byte for byte."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from deepagents._async import Coro, run
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import LsResult
from deepagents.middleware.filesystem.state import FilesystemState
from deepagents.middleware.summarization.archive import part_number
from tests.backends.sandboxes import rooted

PLACES = ("disk", "store", "sandbox", "route", "state")


class Place:
    """A backend of some kind, and the surroundings that it works in."""

    def __init__(self, kind: str, root: Path) -> None:
        self.files = open_backend(_backend(kind, root)).files(None)
        self._state: dict[str, Any] = {}
        self._in_graph = kind == "state"

    def do(self, flow: Callable[[], Coro[Any]]) -> Any:
        """Run a flow, in state as a node of a graph."""
        if not self._in_graph:
            return run(flow())
        found: list[Any] = []
        graph: Any = StateGraph(FilesystemState)
        graph.add_node("work", lambda _: found.append(run(flow()))).add_edge(START, "work")
        done = graph.compile().invoke({"messages": [], "files": self._state})
        self._state = done["files"]
        return found[0]

    def bytes(self, path: str) -> bytes:
        """Return what a file holds."""
        return self.do(lambda: self.files.download(path))

    def names(self, folder: str) -> list[str]:
        """Name what lies in a directory."""
        found = self.do(lambda: self.files.ls(folder))
        return sorted(each["path"].removeprefix(f"{folder}/") for each in found.entries)


def _backend(kind: str, root: Path) -> BackendProtocol:
    match kind:
        case "state":
            return StateBackend()
        case "store":
            return StoreBackend(store=InMemoryStore(), namespace=("archives",))
        case "sandbox":
            return rooted(root)
        case "route":
            return CompositeBackend(StateBackend(), {"/conversation_history/": FilesystemBackend(root)})
        case _:
            return FilesystemBackend(root)


class Uploads:
    """Files that keep what is uploaded, or take nothing."""

    def __init__(self, *, takes: bool = True) -> None:
        self.kept: dict[str, bytes] = {}
        self.takes = takes

    def capabilities(self, path: str) -> Capabilities:
        return Capabilities()

    async def ls(self, path: str) -> LsResult:
        return LsResult(entries=[])

    async def upload_all(self, files: list[tuple[str, bytes]]) -> list[bool]:
        if self.takes:
            self.kept.update(files)
        return [self.takes] * len(files)


FetchMedia = Callable[[str], bytes]
_BEGINNING = re.compile(r"^<!-- section ([0-9a-f]{16}), (\d+) characters -->\n\n", re.MULTILINE)
_END = re.compile(r"<!-- end of section ([0-9a-f]{16}):((?: [0-9a-f]{12})+) -->")
_OPENING = re.compile(r"(?P<fence>`{3,})(?:json|text)(?P<escaped>-escaped)?(?: [^\n]*)?\n")
_HEADING = re.compile(r"### (?P<type>\w+)\n\n")
_ESCAPED = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def in_order(paths: Iterable[str], first: str) -> list[str]:
    """Return those of the paths that are parts of an archive, in the order in which they were written."""
    numbered = {part_number(path, first): path for path in paths}
    return [numbered[number] for number in sorted(number for number in numbered if number)]


def parse(text: str, fetch: FetchMedia | None = None) -> list[BaseMessage]:
    """Return the messages of an archive, sections that were torn or stand there twice left out.

    `fetch` returns the bytes of a file that it names.
    """
    found: list[BaseMessage] = []
    seen: set[str] = set()
    at = 0
    while beginning := _BEGINNING.search(text, at):
        mark, start = beginning[1], beginning.end()
        stop = start + int(beginning[2])
        at = start
        end = _END.match(text, stop)
        if end and end[1] == mark:
            at = stop
            found += [] if mark in seen else parse_messages(text[start:stop], fetch)
            seen.add(mark)
    return found


def parse_messages(text: str, fetch: FetchMedia | None = None) -> list[BaseMessage]:
    """Return the messages of the text of a section."""
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(text):
        heading = _HEADING.match(text, at)
        assert heading, f"a message should begin here: {text[at : at + 40]!r}"
        fences = list(_fences(text, heading.end()))
        texts = [each for each, _ in fences[1:]]
        found.append({"type": heading["type"], "data": _value(json.loads(fences[0][0]), texts, fetch)})
        at = fences[-1][1]
    return messages_from_dict(found)


def _value(value: Any, texts: Sequence[str], fetch: FetchMedia | None) -> Any:
    match value:
        case {"$text": int(number)}:
            return texts[number - 1]
        case {"$media": path, **more}:
            return _medium(path, more, fetch)
        case {"$bytes": encoded}:
            return base64.b64decode(encoded)
        case dict():
            return {key: _value(each, texts, fetch) for key, each in value.items()}
        case list():
            return [_value(each, texts, fetch) for each in value]
        case _:
            return value


def _medium(path: str, more: dict[str, Any], fetch: FetchMedia | None) -> str | bytes:
    if fetch is None:
        return path
    data = fetch(path)
    return data if "before" not in more else more["before"] + base64.b64encode(data).decode()


def _fences(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield what stands in each fence, and where what follows it begins."""
    while opening := _OPENING.match(text, at):
        closing = f"\n{opening['fence']}\n\n"
        start = opening.end()
        stop = text.index(closing, start)
        inside = text[start:stop]
        at = stop + len(closing)
        yield (_ESCAPED.sub(_unescape, inside) if opening["escaped"] else inside), at


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else "\\"
