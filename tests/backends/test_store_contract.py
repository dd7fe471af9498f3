"""Files in a store keep the contract, whatever the store."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from deepagents.backends import StoreBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.testing.contract import BackendContract

Work = Callable[[BackendProtocol], None]
AsyncWork = Callable[[BackendProtocol], Awaitable[None]]


def backend_on(store: BaseStore) -> StoreBackend:
    """Make a backend on a namespace of its own, between two others that it must not see."""
    name = uuid.uuid4().hex
    return StoreBackend(store=store, namespace=(name, "files"))


class TestInMemoryStore(BackendContract):
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
