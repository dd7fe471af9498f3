"""One tool call as a model would make it, on files in state or on disk, and what the model reads of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import BackendProtocol, FilesystemBackend, StateBackend
from deepagents.testing import Asked, ScriptedModel, call
from deepagents.testing.scripted import ScriptedAnswer
from tests.conftest import CallMode


class Bench:
    """Runs scripts of tool calls, one agent run each, over the same files."""

    def __init__(self, where: Literal["state", "disk"], root: Path, call_mode: CallMode) -> None:
        self.where = where
        self.call_mode = call_mode
        self._root = root
        self._state: dict[str, Any] = {}

    def place(self, path: str, content: str) -> None:
        """Place one text file by path."""
        if self.where == "state":
            self._state[path] = {"content": content, "encoding": "utf-8"}
        else:
            self._to_disk(path, content.encode())

    def place_bytes(self, path: str, data: bytes) -> None:
        """Place one binary file by path."""
        if self.where == "state":
            self._state[path] = {"content": base64.b64encode(data).decode(), "encoding": "base64"}
        else:
            self._to_disk(path, data)

    def _to_disk(self, path: str, data: bytes) -> None:
        real = self._root / path.lstrip("/")
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_bytes(data)

    def content(self, path: str) -> str | None:
        """Return a file's text as it is kept, or `None`."""
        if self.where == "state":
            return self._state[path]["content"] if path in self._state else None
        real = self._root / path.lstrip("/")
        return real.read_bytes().decode() if real.exists() else None

    def run(self, *script: Any, **options: Any) -> list[ToolMessage]:
        """Run an agent through a script of calls; return the tool messages."""
        backend: BackendProtocol = (
            StateBackend() if self.where == "state" else FilesystemBackend(root_dir=self._root)
        )
        backend = options.pop("backend", backend)
        middleware = [FilesystemMiddleware(backend=backend, **options)] if options else ()
        with ScriptedModel(*script, "Done.") as model:
            agent = create_deep_agent(model, backend=backend, middleware=middleware)
            result: Mapping[str, Any] = self.call_mode.invoke(
                agent, {"messages": "Go", **({"files": self._state} if self.where == "state" else {})}
            )
        self._state = dict(result.get("files", {}))
        return [message for message in result["messages"] if message.type == "tool"]

    def use(self, tool: str, /, **arguments: Any) -> ToolMessage:
        """Make one call and return what the model reads."""
        return self.run(call(tool, **arguments))[0]


def meddling(bench: Bench, path: str, content: str, then: AIMessage) -> Any:
    """Say: while the model was thinking, somebody else changed a file on disk."""

    def reply(asked: Asked) -> ScriptedAnswer:
        bench.place(path, content)
        return then

    return reply


def code_of(message: ToolMessage) -> str | None:
    """Return the code that a failed call leaves for programs."""
    return message.additional_kwargs.get("error_code")


@pytest.fixture(params=[("state", "sync"), ("disk", "async")], ids=["state", "disk"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A bench on files in state, called blocking, then on disk, awaited: tools are the same code for both."""
    where, mode = request.param
    with asyncio.Runner() as runner:
        yield Bench(where, tmp_path, CallMode(mode, runner))
