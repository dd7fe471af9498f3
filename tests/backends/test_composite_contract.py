"""A composite keeps the contract of every backend, however its files are spread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.middleware.filesystem.state import FilesystemState
from deepagents.testing.contract import BackendContract, Called

SPREAD = ("src/deep", "lib", ".github")
"""Directories of the suite's tree that get a backend of their own."""


class SpreadContract(BackendContract):
    """The contract, but that the way to a route is listed even where no file is."""

    @pytest.fixture(autouse=True)
    def _roots(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def disk(self, name: str) -> FilesystemBackend:
        root = self.root / name.replace("/", "-")
        root.mkdir()
        return FilesystemBackend(root)

    def spread(self, default: BackendProtocol) -> CompositeBackend:
        return CompositeBackend(default, {f"/{name}/": self.disk(name) for name in SPREAD})

    def test_a_directory_lists_what_is_directly_in_it(self, files: Called) -> None:
        for path in ("/b.txt", "/src/x.txt", "/src/deep/z.txt", "/src/deep.txt", "/lib/a/b", "/libs/q"):
            files.wrote(path, "text")

        def listed(path: str) -> list[str]:
            return [entry["path"] for entry in files.ls(path).entries]

        assert listed("/") == ["/.github/", "/b.txt", "/lib/", "/libs/", "/src/"]
        assert listed("/src") == listed("/src/") == ["/src/deep.txt", "/src/deep/", "/src/x.txt"]
        assert listed("/src/deep") == ["/src/deep/z.txt"]
        assert listed("/lib") == ["/lib/a/"]

    def test_an_entry_has_a_kind_a_size_in_bytes_and_a_time(self, files: Called) -> None:
        files.wrote("/lib/ü.txt", "ü🙂\n")
        assert files.upload(("/lib/b.bin", b"\x00\xff\xfe"))[0].error is None

        binary, text = files.ls("/lib").entries

        assert (binary["path"], binary["is_dir"], binary["size"]) == ("/lib/b.bin", False, 3)
        assert (text["path"], text["is_dir"], text["size"]) == ("/lib/ü.txt", False, 7)
        assert text["modified_at"]
        assert all(entry["is_dir"] for entry in files.ls("/").entries)

    def test_nothing_lists_as_nothing(self, files: Called) -> None:
        assert files.ls("/lib").entries == files.ls("/src/deep").entries == []
        assert [entry["path"] for entry in files.ls("/src").entries] == ["/src/deep/"]
        nowhere = files.ls("/nowhere")
        assert nowhere.entries == [] or nowhere.code == "file_not_found"


class TestDiskWithStore(SpreadContract):
    def make_backend(self) -> BackendProtocol:
        store = InMemoryStore()
        routes = {
            f"/{name}": StoreBackend(store=store, namespace=(str(number),))
            for number, name in enumerate(SPREAD)
        }
        return CompositeBackend(self.disk("default"), routes)


class TestNested(SpreadContract):
    def make_backend(self) -> BackendProtocol:
        outer = CompositeBackend(
            self.disk("default"),
            {
                "/src": CompositeBackend(self.disk("src"), {"/deep": self.disk("src/deep")}),
                "/lib": self.disk("lib"),
            },
        )
        return CompositeBackend(outer, {"/.github": self.disk(".github")})

    def test_nothing_lists_as_nothing(self, files: Called) -> None:
        assert files.ls("/lib").entries == files.ls("/src/deep").entries == []
        assert [entry["path"] for entry in files.ls("/src").entries] == ["/src/deep/"]


class TestStateWithDisk(SpreadContract):
    def make_backend(self) -> BackendProtocol:
        return self.spread(StateBackend())

    def run(self, work: Callable[[BackendProtocol], None]) -> None:
        def node(state: FilesystemState) -> dict[str, Any]:
            work(self.make_backend())
            return {}

        _graph(node).invoke({"messages": []})

    async def arun(self, work: Callable[[BackendProtocol], Awaitable[None]]) -> None:
        async def node(state: FilesystemState) -> dict[str, Any]:
            await work(self.make_backend())
            return {}

        await _graph(node).ainvoke({"messages": []})


def _graph(node: Callable[..., Any]) -> Any:
    graph: Any = StateGraph(FilesystemState)
    return graph.add_node("work", node).add_edge(START, "work").compile()
