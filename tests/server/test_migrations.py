"""Databases get the tables that the present release knows, and keep those of another one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from langgraph_sdk import get_sync_client

from deepagents_server.database import migrations, open_database
from deepagents_server.database.migrations import STEPS
from deepagents_server.database.tables import METADATA, api_keys
from deepagents_server.errors import ServeError
from tests.server.serving import Process
from tests.server.test_runs import last, say

pytestmark = pytest.mark.slow

Make = Callable[[], str]
"""Make an empty database, and return its address."""


@pytest.fixture(params=["sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path / uuid4().hex}.db"
    place: str = request.getfixturevalue("postgres")
    return lambda: _make_database(place)


def _make_database(place: str) -> str:
    name = f"made_{uuid4().hex}"
    with psycopg.connect(place, autocommit=True) as opened:
        opened.execute(sa.text(f"CREATE DATABASE {name}").text.encode())
    host = dict(part.split("=") for part in place.split())["host"]
    return f"postgresql://postgres@/{name}?host={host}"


def _shape_of(url: str) -> dict[str, Any]:
    """Describe the server's tables, whatever made them."""
    made = sa.make_url(url)
    engine = sa.create_engine(made if "sqlite" in url else made.set(drivername="postgresql+psycopg"))
    found = sa.inspect(engine)
    shape = {
        name: (
            sorted(
                (each["name"], str(each["type"]), each["nullable"], each["default"])
                for each in found.get_columns(name)
            ),
            found.get_pk_constraint(name)["constrained_columns"],
            sorted((each["name"], each["column_names"], each["unique"]) for each in found.get_indexes(name)),
        )
        for name in METADATA.tables
    }
    engine.dispose()
    return shape


async def test_a_command_makes_no_tables_of_another_release(make: Make) -> None:
    """A server may be at work on them; what is not there yet, is made."""
    place = make()
    async with open_database(place, alongside=True) as database:
        assert await database.count(sa.select(api_keys)) == 0
        later = sa.text("UPDATE server_migrations SET version = 2")
        await database.execute(later)
    for alongside in (True, False):
        with pytest.raises(ServeError, match="version 2, and this release"):
            async with open_database(place, alongside=alongside):
                pass


async def test_the_steps_lead_to_the_tables_that_the_code_knows(make: Make) -> None:
    stepped, direct = make(), make()
    async with open_database(stepped):
        pass
    made = sa.make_url(direct)
    engine = sa.create_engine(made if "sqlite" in direct else made.set(drivername="postgresql+psycopg"))
    METADATA.create_all(engine)
    engine.dispose()

    assert _shape_of(stepped) == _shape_of(direct), (
        "tables.py has changed; add a step in src/deepagents_server/database/steps"
    )


def test_every_step_is_there_for_both_databases() -> None:
    directory = Path(migrations.__file__).with_name("steps")
    names = [f"{number}_{name}" for number, name in enumerate(STEPS, 1)]

    assert sorted(path.name for path in directory.iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("sql", "sqlite.sql", "postgresql.sql")
    )


@pytest.mark.slow
def test_servers_that_start_at_once_make_the_tables_once(postgres: str, tmp_path: Path) -> None:
    database = _make_database(postgres)
    servers = [Process(tmp_path, "--database", database) for _ in range(3)]
    try:
        with ThreadPoolExecutor(3) as starting:
            urls = [*starting.map(Process.start, servers)]
        with get_sync_client(url=urls[0], api_key=None) as first:
            thread = first.threads.create()["thread_id"]
            run = first.runs.create(thread, "echo", input=say("go on"))["run_id"]
        with get_sync_client(url=urls[-1], api_key=None) as client:
            values: Any = client.runs.join(thread, run)
        assert last(values) == "Echo: go on"
    finally:
        for server in servers:
            server.close()
