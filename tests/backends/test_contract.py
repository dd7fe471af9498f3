"""Every backend keeps the contract: on disk, in state, in stores, in a sandbox, and spread over several."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from deepagents._programs import find_program
from deepagents.backends import (
    CompositeBackend,
    FilesystemBackend,
    LocalShellBackend,
    StateBackend,
    StoreBackend,
)
from deepagents.backends.protocol import BackendProtocol
from deepagents.testing.contract import BackendContract, Called
from deepagents.testing.contract.allowing import AllowingContract
from deepagents.testing.contract.base import ContractBase
from deepagents.testing.contract.changing import ChangingContract
from deepagents.testing.contract.naming import NamingContract
from deepagents.testing.contract.searching import SearchingContract
from tests.backends.in_graph import ain_graph, in_graph
from tests.backends.ripgrep import no_ripgrep
from tests.backends.sandboxes import rooted

blocking = pytest.mark.parametrize("files", ["sync"], indirect=True)
awaiting = pytest.mark.parametrize("files", ["async"], indirect=True)
"""For backends whose other colour runs the same code, which other classes here run in both."""

Work = Callable[[BackendProtocol], None]
AsyncWork = Callable[[BackendProtocol], Awaitable[None]]


class Rooted(ContractBase):
    """A backend whose files lie below `root`."""

    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path / "root"
        self.root.mkdir()


class InState(ContractBase):
    """A backend with files in state, which works inside a run."""

    def run(self, work: Work) -> None:
        in_graph(lambda: work(self.make_backend()))

    async def arun(self, work: AsyncWork) -> None:
        await ain_graph(lambda: work(self.make_backend()))


class ContextContract(BackendContract):
    """The suite, and `context_lines`."""

    def test_the_lines_around_a_match_are_given_when_asked_for(self, files: Called) -> None:
        files.write_text("/a.txt", "one\ntwo\nthree\nfour\n")

        (match,) = files.grep("t(wo|en)", regex=True, context_lines=1).matches

        assert (match["line"], match["text"]) == (2, "two")
        assert match["context_before"] == [{"line": 1, "text": "one"}]
        assert match["context_after"] == [{"line": 3, "text": "three"}]


class OwnContract(ContextContract):
    """All that our backends of files promise."""

    @pytest.mark.parametrize("wrong", [None, 5, b"bytes"])
    def test_what_is_no_text_is_refused_in_a_result(self, files: Called, wrong: Any) -> None:
        files.write_text("/a", "line\n")

        answers = [
            files.write("/a", wrong),
            files.write("/new", wrong),
            files.edit("/a", wrong, "x"),
            files.edit("/a", "line", wrong),
        ]
        sent = files.call("upload_files", [("/b", "text"), ("/c", b"C")])

        assert [each.code for each in answers] == ["invalid_argument"] * 4
        assert [each.error is None for each in sent] == [False, True]
        assert files.read_text("/a") == "line\n"


class TestFilesystemBackend(Rooted, OwnContract):
    def make_backend(self) -> BackendProtocol:
        return FilesystemBackend(self.root)


@blocking
class TestLocalShellBackend(Rooted, BackendContract):
    def make_backend(self) -> BackendProtocol:
        return LocalShellBackend(self.root)


class TestFilesystemWithoutRipgrep(Rooted, SearchingContract, NamingContract, AllowingContract):
    @pytest.fixture(autouse=True)
    def _no_ripgrep(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        with no_ripgrep(tmp_path_factory.mktemp("nowhere")):
            yield

    def make_backend(self) -> BackendProtocol:
        return FilesystemBackend(self.root)


def test_ripgrep_is_there_where_it_is_not_taken_away() -> None:
    assert find_program("rg", further=[Path(sys.executable).parent])


@pytest.mark.slow
@blocking
class TestSandbox(Rooted, ContextContract):
    def make_backend(self) -> BackendProtocol:
        return rooted(self.root)


@pytest.mark.slow
@awaiting
class TestSandboxAwaited(Rooted, ChangingContract):
    """Awaiting starts the same programs inside: what they read, find, edit and take for a name is known."""

    def make_backend(self) -> BackendProtocol:
        return rooted(self.root)


@pytest.mark.slow
@blocking
class TestSandboxWithoutRipgrep(Rooted, SearchingContract):
    def make_backend(self) -> BackendProtocol:
        programs = self.root.with_name("programs")
        programs.mkdir(exist_ok=True)
        (programs / "python3").symlink_to(sys.executable)
        sandbox = rooted(self.root)
        sandbox.env["PATH"] = str(programs)
        return sandbox


class TestStateBackend(InState, OwnContract):
    def make_backend(self) -> BackendProtocol:
        return StateBackend()


def backend_on(store: BaseStore) -> StoreBackend:
    """Make a backend on a namespace of its own."""
    return StoreBackend(store=store, namespace=(uuid.uuid4().hex, "files"))


class TestInMemoryStore(OwnContract):
    def make_backend(self) -> BackendProtocol:
        return backend_on(InMemoryStore())


class TestSqliteStore(BackendContract):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _tables(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.database = str(tmp_path_factory.mktemp("sqlite") / "store.db")
        with SqliteStore.from_conn_string(cls.database) as store:
            store.setup()
            store.conn.execute("PRAGMA journal_mode=WAL")

    def run(self, work: Work) -> None:
        with SqliteStore.from_conn_string(self.database) as store:
            work(backend_on(store))

    async def arun(self, work: AsyncWork) -> None:
        async with AsyncSqliteStore.from_conn_string(self.database) as store:
            await work(backend_on(store))


class TestPostgresStore(BackendContract):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _tables(cls, postgres: str) -> None:
        cls.database = postgres
        with PostgresStore.from_conn_string(postgres) as store:
            store.setup()

    def run(self, work: Work) -> None:
        with PostgresStore.from_conn_string(self.database) as store:
            work(backend_on(store))

    async def arun(self, work: AsyncWork) -> None:
        async with AsyncPostgresStore.from_conn_string(self.database) as store:
            await work(backend_on(store))


SPREAD = ("src/deep", "lib", ".github")
"""Directories of the suite's tree that get a backend of their own."""


class SpreadContract(Rooted, BackendContract):
    """The contract, but that the way to a route is listed even where no file is."""

    def disk(self, name: str) -> FilesystemBackend:
        root = self.root / name.replace("/", "-")
        root.mkdir()
        return FilesystemBackend(root)

    def test_a_directory_lists_what_is_directly_in_it(self, files: Called) -> None:
        for path in ("/b.txt", "/src/x.txt", "/src/deep/z.txt", "/src/deep.txt", "/lib/a/b", "/libs/q"):
            files.write_text(path, "text")

        assert files.list_paths("/") == ["/.github/", "/b.txt", "/lib/", "/libs/", "/src/"]
        assert files.list_paths("/src") == files.list_paths("/src/")
        assert files.list_paths("/src") == ["/src/deep.txt", "/src/deep/", "/src/x.txt"]
        assert files.list_paths("/src/deep") == ["/src/deep/z.txt"]
        assert files.list_paths("/lib") == ["/lib/a/"]

    def test_an_entry_has_a_kind_a_size_in_bytes_and_a_time(self, files: Called) -> None:
        files.write_text("/lib/ü.txt", "ü🙂\n")
        assert files.upload(("/lib/b.bin", b"\x00\xff\xfe"))[0].error is None

        binary, text = files.ls("/lib").entries

        assert (binary["path"], binary["is_dir"], binary["size"]) == ("/lib/b.bin", False, 3)
        assert (text["path"], text["is_dir"], text["size"]) == ("/lib/ü.txt", False, 7)
        assert text["modified_at"]
        assert all(entry["is_dir"] for entry in files.ls("/").entries)

    def test_nothing_lists_as_nothing(self, files: Called) -> None:
        assert files.list_paths("/lib") == files.list_paths("/src/deep") == []
        assert files.list_paths("/src") == ["/src/deep/"]
        nowhere = files.ls("/nowhere")
        assert nowhere.entries == [] or nowhere.code == "file_not_found"


@blocking
class TestDiskWithStore(SpreadContract):
    def make_backend(self) -> BackendProtocol:
        store = InMemoryStore()
        routes = {
            f"/{name}": StoreBackend(store=store, namespace=(str(number),))
            for number, name in enumerate(SPREAD)
        }
        return CompositeBackend(self.disk("default"), routes)


@awaiting
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


@blocking
class TestStateWithDisk(InState, SpreadContract):
    def make_backend(self) -> BackendProtocol:
        return CompositeBackend(StateBackend(), {f"/{name}/": self.disk(name) for name in SPREAD})
