from __future__ import annotations

from pathlib import Path
from sqlite3 import IntegrityError
from typing import Any

import pytest
import sqlalchemy as sa
from langgraph.checkpoint.base import empty_checkpoint

from deepagents_server.database import open_database
from deepagents_server.database.tables import leases
from deepagents_server.errors import ServeError


def address(directory: Path) -> str:
    return f"sqlite:///{directory / 'kept' / 'server.db'}"


async def test_a_file_serves_one_process_at_a_time_and_again_later(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database:
        await database.execute(leases.insert().values(thread_id="t"))
        with pytest.raises(ServeError, match="belongs to a server that runs"):
            async with open_database(address(tmp_path)):
                pass

    async with open_database(address(tmp_path)) as database:
        assert await database.count(sa.select(leases)) == 1


async def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database, database.write() as connection:
        await connection.execute(sa.text("INSERT INTO server_migrations VALUES (999)"))

    with pytest.raises(ServeError, match="use the newer release"):
        async with open_database(address(tmp_path)):
            pass


async def test_what_is_no_database_is_refused() -> None:
    with pytest.raises(ServeError, match="is no database"):
        async with open_database("mysql://nowhere/x"):
            pass


async def test_who_lost_a_thread_can_write_no_checkpoint(tmp_path: Path) -> None:
    async with open_database(address(tmp_path)) as database:
        await database.execute(leases.insert().values(thread_id="t", token=2))

        async def write(lease: int) -> None:
            config: Any = {
                "configurable": {"thread_id": "t", "checkpoint_ns": ""},
                "metadata": {"lease": lease},
            }
            await database.saver.aput(config, empty_checkpoint(), {"source": "loop", "step": 1}, {})

        await write(2)
        with pytest.raises(IntegrityError, match="lease lost"):
            await write(1)
