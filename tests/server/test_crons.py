from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError
from sqlalchemy.exc import IntegrityError

from deepagents_server.config import ServerConfig
from deepagents_server.crons import next_date, start_due
from deepagents_server.database.tables import assistants, crons, runs
from deepagents_server.serialize import dump_text, now
from deepagents_server.server import Server, Settings, open_server
from tests.server.serving import GRAPHS
from tests.server.test_runs import say

pytestmark = pytest.mark.slow


async def test_a_schedule_is_made_found_changed_and_removed(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    made: Any = await client.crons.create_for_thread(
        thread, "echo", schedule="0 9 * * *", input=say("hello"), timezone="Europe/Paris"
    )
    (found,) = await client.crons.search(thread_id=thread)
    assert found["cron_id"] == made["cron_id"]
    assert made["payload"]["input"] == say("hello")
    assert made["next_run_date"] > datetime.now(UTC).isoformat()

    changed: Any = await client.crons.update(made["cron_id"], schedule="0 10 * * *", enabled=False)

    assert (changed["schedule"], changed["enabled"]) == ("0 10 * * *", False)
    assert changed["payload"] == made["payload"]
    assert await client.crons.count(thread_id=thread) == 1
    await client.crons.delete(made["cron_id"])
    with pytest.raises(NotFoundError):
        await client.crons.delete(made["cron_id"])


async def test_schedules_of_a_thread_go_with_it(client: LangGraphClient) -> None:
    """They could start no run any more."""
    thread = (await client.threads.create())["thread_id"]
    await client.crons.create_for_thread(thread, "echo", schedule="0 9 * * *", input=say("hello"))

    await client.threads.delete(thread)

    assert await client.crons.count(thread_id=thread) == 0


@pytest.mark.parametrize("schedule", ["often", "* * * * * *", "61 * * * *", "@daily"])
async def test_what_is_no_schedule_is_refused(client: LangGraphClient, schedule: str) -> None:
    with pytest.raises(UnprocessableEntityError, match="schedule"):
        await client.crons.create("echo", schedule=schedule)


def test_times_are_those_of_the_place_also_when_clocks_change() -> None:
    spring = "2026-03-28T12:00:00.000000+00:00"

    assert next_date("0 9 * * *", "Europe/Paris", None, spring) == "2026-03-29T07:00:00.000000+00:00"
    assert next_date("0 9 * * *", None, "2026-03-28T13:00:00", spring) is None


async def add_schedule(server: Server, **fields: Any) -> None:
    """Keep a schedule that is due."""
    assistant = (await server.database.rows(sa.select(assistants).limit(1)))[0]["assistant_id"]
    row = {
        "cron_id": "c",
        "assistant_id": assistant,
        "schedule": "* * * * *",
        "payload": dump_text({"input": say("hello")}),
        "metadata": {},
        "next_run_date": "2026-01-01T00:00:00.000000+00:00",
        "created_at": now(),
        "updated_at": now(),
        **fields,
    }
    await server.database.execute(crons.insert().values(row))


async def test_more_schedules_are_due_than_are_read_at_once(tmp_path: Path) -> None:
    """Also behind those that cannot be read, which stay due."""
    settings = Settings(f"sqlite:///{tmp_path / 'server.db'}", slots=0)
    async with open_server(ServerConfig(tmp_path, GRAPHS), settings) as server:
        for number in range(110):
            await add_schedule(server, cron_id=f"a{number}", schedule="0 0 30 2 *")
        for number in range(15):
            await add_schedule(server, cron_id=f"b{number}")

        assert await start_due(server) == 15
        assert await start_due(server) == 0


async def test_what_is_due_starts_once_though_several_servers_look(tmp_path: Path) -> None:
    settings = Settings(f"sqlite:///{tmp_path / 'server.db'}", slots=0)
    async with open_server(ServerConfig(tmp_path, GRAPHS), settings) as server:
        await add_schedule(server, cron_id="a", schedule="0 0 30 2 *")
        await add_schedule(server)

        started = await asyncio.gather(start_due(server), start_due(server))

        assert sum(started) == 1, "one that cannot be read keeps no other back"
        (run,) = await server.database.rows(sa.select(runs))
        assert run["metadata"]["cron_id"] == "c"
        assert await start_due(server) == 0


async def test_a_date_is_past_only_when_its_run_is_made(tmp_path: Path) -> None:
    """A database that fails between the two leaves the schedule due; what can never start leaves it not."""
    settings = Settings(f"sqlite:///{tmp_path / 'server.db'}", slots=0)
    async with open_server(ServerConfig(tmp_path, GRAPHS), settings) as server:
        await add_schedule(server)
        fails = (
            "CREATE TRIGGER fails BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
        await server.database.execute(sa.text(fails))
        with pytest.raises(IntegrityError, match="disk"):
            await start_due(server)

        await server.database.execute(sa.text("DROP TRIGGER fails"))

        assert await start_due(server) == 1
        assert len(await server.database.rows(sa.select(runs))) == 1
        await add_schedule(server, cron_id="gone", assistant_id="gone")
        assert await start_due(server) == 1
        assert await start_due(server) == 0
        assert len(await server.database.rows(sa.select(runs))) == 1
