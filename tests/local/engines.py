"""An engine that says what the test tells it and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from threading import Event as Flag
from typing import Any

from langchain_core.tools import tool

from deepagents_local import ChatLocal
from deepagents_local.engine import Delta, Event, Finish, Request


class ScriptedEngine:
    """Each reply is a text, handed over in small pieces; `cut` ends it at the token limit."""

    def __init__(self, *replies: str, piece: int = 3, cut: bool = False) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self._piece = piece
        self._cut = cut

    def complete(self, request: Request, emit: Callable[[Event], None], stopped: Callable[[], bool]) -> None:
        self.requests.append(request)
        reply = self.replies.pop(0)
        for start in range(0, len(reply), self._piece):
            emit(Delta(reply[start : start + self._piece]))
        emit(Finish("length" if self._cut else "stop", 20, 15, 5))


class EndlessEngine:
    """Talks until it is stopped, and tells when it was."""

    def __init__(self) -> None:
        self.started = Flag()
        self.stopped = Flag()

    def complete(self, request: Request, emit: Callable[[Event], None], stopped: Callable[[], bool]) -> None:
        self.started.set()
        while not stopped():
            emit(Delta("and "))
        self.stopped.set()


class BrokenEngine:
    """Fails after one word."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def complete(self, request: Request, emit: Callable[[Event], None], stopped: Callable[[], bool]) -> None:
        emit(Delta("well"))
        raise self._error


@tool
def ls(path: str) -> str:
    """List a directory. Entries come one a line."""
    return ""


@tool
def read_file(file_path: str, offset: int = 0, limit: int = 100) -> str:
    """Read a file."""
    return ""


@tool
def write_file(file_path: str, content: str) -> str:
    """Create a file."""
    return ""


@tool
def edit_file(file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
    """Replace text in a file."""
    return ""


@tool
def grep(pattern: str, path: str | None = None, output_mode: str = "files_with_matches") -> str:
    """Find text."""
    return ""


FILE_TOOLS = [ls, read_file, write_file, edit_file, grep]


def with_tools(engine: ScriptedEngine, tools: Sequence[Any] = FILE_TOOLS, **options: Any) -> Any:
    """A model over this engine with tools bound to it."""
    return ChatLocal(engine=engine, n_threads=1).bind_tools(tools, **options)


def forms(request: Request) -> list[dict[str, Any]]:
    """The objects that the request allows as a reply."""
    assert request.grammar is not None
    schemas = request.grammar.split("%json ")[1:]
    return [form for schema in schemas for form in json.JSONDecoder().raw_decode(schema)[0]["anyOf"]]


def allowed_names(request: Request) -> list[str]:
    """The tools that the request allows, and `final_answer` where it allows that."""
    return [form["properties"].get("tool", {"const": "final_answer"})["const"] for form in forms(request)]
