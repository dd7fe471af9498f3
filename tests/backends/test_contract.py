"""Every backend keeps the contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from deepagents.backends._search import find_ripgrep
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.local_shell import LocalShellBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.state import StateBackend
from deepagents.middleware.filesystem.state import FilesystemState
from deepagents.testing.contract import BackendContract
from deepagents.testing.contract.allowing import AllowingContract
from deepagents.testing.contract.naming import NamingContract
from deepagents.testing.contract.searching import SearchingContract
from tests.backends.ripgrep import no_ripgrep


class TestFilesystemBackend(BackendContract):
    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def make_backend(self) -> BackendProtocol:
        return FilesystemBackend(self.root)


class TestLocalShellBackend(TestFilesystemBackend):
    def make_backend(self) -> BackendProtocol:
        return LocalShellBackend(self.root)


class TestFilesystemWithoutRipgrep(SearchingContract, NamingContract, AllowingContract):
    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path

    @pytest.fixture(autouse=True)
    def _no_ripgrep(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        with no_ripgrep(tmp_path_factory.mktemp("nowhere")):
            yield

    def make_backend(self) -> BackendProtocol:
        return FilesystemBackend(self.root)


def test_ripgrep_is_there_where_it_is_not_taken_away() -> None:
    assert find_ripgrep()


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
