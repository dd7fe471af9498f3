"""Every backend keeps the contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.local_shell import LocalShellBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.state import StateBackend
from deepagents.middleware.filesystem.state import FilesystemState
from deepagents.testing.contract import BackendContract


class TestFilesystemBackend(BackendContract):
    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def make_backend(self) -> BackendProtocol:
        return FilesystemBackend(self.root)


class TestLocalShellBackend(TestFilesystemBackend):
    def make_backend(self) -> BackendProtocol:
        return LocalShellBackend(self.root)


class TestStateBackend(BackendContract):
    def make_backend(self) -> BackendProtocol:
        return StateBackend()

    def run(self, work: Callable[[BackendProtocol], None]) -> None:
        def node(state: FilesystemState) -> dict[str, Any]:
            work(self.make_backend())
            return {}

        graph: Any = StateGraph(FilesystemState)
        graph.add_node("work", node).add_edge(START, "work").compile().invoke({"messages": []})

    async def arun(self, work: Callable[[BackendProtocol], Awaitable[None]]) -> None:
        async def node(state: FilesystemState) -> dict[str, Any]:
            await work(self.make_backend())
            return {}

        graph: Any = StateGraph(FilesystemState)
        await graph.add_node("work", node).add_edge(START, "work").compile().ainvoke({"messages": []})
