"""Databases of every version since the first work with the present release."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from langgraph_sdk import get_client, get_sync_client

from deepagents_server.database import migrations, open_database
from deepagents_server.database.migrations import STEPS
from deepagents_server.database.tables import METADATA, api_keys
from deepagents_server.errors import ServeError
from tests.server.serving import Process, serving_apart
from tests.server.test_runs import last

VERSIONS = Path(__file__).with_name("versions")
FIRST = "00000000-0000-4000-8000-000000000001"
WAITING = "00000000-0000-4000-8000-000000000002"

Make = Callable[[str], str]
"""Make a database of the SQL in a file, or an empty one, and return its address."""


@pytest.fixture(params=["sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "sqlite":
        return lambda version: _make_file(tmp_path / f"{uuid4().hex}.db", version)
    place: str = request.getfixturevalue("postgres")
    return lambda version: _make_database(place, version)


def _make_file(path: Path, version: str) -> str:
    if version:
        with closing(sqlite3.connect(path)) as opened:
            opened.executescript((VERSIONS / f"{version}.sqlite.sql").read_text())
    return f"sqlite:///{path}"


def _make_database(place: str, version: str) -> str:
    name = f"made_{uuid4().hex}"
    with psycopg.connect(place, autocommit=True) as opened:
        opened.execute(sa.text(f"CREATE DATABASE {name}").text.encode())
    if version:
        with psycopg.connect(f"{place} dbname={name}", autocommit=True) as opened:
            opened.execute((VERSIONS / f"{version}.postgresql.sql").read_bytes())
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


async def test_a_database_of_the_first_version_goes_on(make: Make, tmp_path: Path) -> None:
    """What it holds is there, the run that waited runs, and its shape is that of a new one."""
    old, new = make("1"), make("")
    async with open_database(new):
        pass

    with serving_apart(tmp_path, old) as url:
        async with get_client(url=url, api_key=None) as client:
            state: Any = await client.threads.get_state(FIRST)
            (waiting,) = await client.runs.list(WAITING)
            values: Any = await client.runs.join(WAITING, waiting["run_id"])
            kept: Any = await client.store.get_item(["notes"], "tide")

    assert state["values"]["messages"][-1]["content"] == "hello"
    assert last(values) == "Echo: go on"
    assert kept["value"] == {"height": 13}
    assert _shape_of(old) == _shape_of(new)


async def test_a_command_leaves_the_tables_of_an_older_server_alone(make: Make) -> None:
    """It may be at work on them; what is not there yet, is made."""
    old = make("1")
    async with open_database(make(""), alongside=True) as database:
        assert await database.count(sa.select(api_keys)) == 0
    with pytest.raises(ServeError, match="version 1, and this release works on"):
        async with open_database(old, alongside=True):
            pass


async def test_the_steps_lead_to_the_tables_that_the_code_knows(make: Make) -> None:
    stepped, direct = make(""), make("")
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
        f"{name}.{database}.sql" for name in names for database in ("sqlite", "postgresql")
    )


@pytest.mark.slow
def test_servers_that_start_at_once_migrate_once(postgres: str, tmp_path: Path) -> None:
    database = _make_database(postgres, "1")
    servers = [Process(tmp_path, "--database", database) for _ in range(3)]
    try:
        with ThreadPoolExecutor(3) as starting:
            urls = [*starting.map(Process.start, servers)]
        with get_sync_client(url=urls[0], api_key=None) as first:
            (waiting,) = first.runs.list(WAITING)
        with get_sync_client(url=urls[-1], api_key=None) as client:
            values: Any = client.runs.join(WAITING, waiting["run_id"])
        assert last(values) == "Echo: go on"
    finally:
        for server in servers:
            server.close()
