"""What goes by itself, and what stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError

from deepagents_server.config import Ages
from deepagents_server.database.queue import RunQueue
from deepagents_server.database.removal import Remover, open_remover
from tests.server.serving import serving_apart
from tests.server.test_runs import last, say

pytestmark = pytest.mark.slow

NOBODY = "00000000-0000-4000-8000-000000000000"
ALL = Ages(threads=0, runs=0, events=0, traces=0)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def kept(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """A server of its own, since whatever rests in it is removed; and the address of its database."""
    directory = tmp_path_factory.mktemp("kept")
    database = f"sqlite:///{directory / 'server.db'}"
    if request.param == "postgresql":
        host = dict(part.split("=") for part in request.getfixturevalue("postgres").split())["host"]
        database = f"postgresql://postgres@/postgres?host={host}"
    with serving_apart(directory, database) as url:
        yield url, database


@pytest.fixture
async def client(kept: tuple[str, str]) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=kept[0], api_key=None) as client:
        yield client


@pytest.fixture
def remover(kept: tuple[str, str]) -> Iterator[Remover]:
    with open_remover(kept[1]) as remover:
        yield remover


async def make(client: LangGraphClient, graph: str, text: str, **options: Any) -> str:
    """Run a graph on a new thread and return the thread."""
    thread = (await client.threads.create(**options))["thread_id"]
    run = await client.runs.create(thread, graph, input=say(text), stream_resumable=True)
    await client.runs.join(thread, run["run_id"])
    return thread


async def is_there(client: LangGraphClient, thread: str) -> bool:
    try:
        return bool(await client.threads.get(thread))
    except NotFoundError:
        return False


async def test_what_rests_goes_and_what_is_needed_stays(client: LangGraphClient, remover: Remover) -> None:
    finished, failed = await make(client, "echo", "hello"), await make(client, "echo", "fail so")
    asking = await make(client, "echo", "ask why")
    working = (await client.threads.create())["thread_id"]
    run = await client.runs.create(working, "echo", input=say(f"wait {working}"))
    waiting = (await client.threads.create())["thread_id"]
    await client.runs.create(waiting, "echo", input=say("later"), after_seconds=3600)
    scheduled = (await client.threads.create())["thread_id"]
    cron: Any = await client.crons.create_for_thread(scheduled, "echo", schedule="0 0 1 1 *", input=say("x"))
    cancelled = (await client.threads.create())["thread_id"]
    stopped = await client.runs.create(cancelled, "echo", input=say(f"wait {cancelled}"))
    await client.runs.cancel(cancelled, stopped["run_id"], wait=True)

    removed = await asyncio.to_thread(remover.sweep, ALL)

    there = [finished, failed, asking, working, waiting, scheduled, cancelled]
    assert [await is_there(client, each) for each in there] == [False, False, True, True, True, True, False]
    assert removed.threads >= 3
    await client.crons.delete(cron["cron_id"])
    await client.runs.wait((await client.threads.create())["thread_id"], "gate", input=say(working))
    await client.runs.join(working, run["run_id"])
    answered: Any = await client.runs.wait(asking, "echo", command={"resume": "because"})
    assert last(answered) == "You said because."


async def test_nothing_is_left_of_a_thread(client: LangGraphClient, kept: tuple[str, str]) -> None:
    thread = await make(client, "echo", "hello")
    other = await make(client, "echo", "hello")
    before = rows_of(kept[1], thread)

    await client.threads.delete(thread)

    assert all(before.values())
    assert not any(rows_of(kept[1], thread).values())
    assert rows_of(kept[1], other) == before
    again = (await client.threads.create(thread_id=thread))["thread_id"]
    values: Any = await client.runs.wait(again, "echo", input=say("anew"))
    assert [each["content"] for each in values["messages"]] == ["anew", "Echo: anew"]


async def test_a_run_without_a_thread_leaves_nothing_and_may_keep_it(
    client: LangGraphClient, remover: Remover, kept: tuple[str, str]
) -> None:
    temporary = await client.runs.create(None, "echo", input=say("hello"))
    stays: Any = await client.runs.create(None, "echo", input=say("hello"), on_completion="keep")
    for run in (temporary, stays):
        await client.runs.join(run["thread_id"], run["run_id"])
    assert await is_there(client, temporary["thread_id"]), "a client may still come back for the end"

    shown: Any = await client.threads.get(temporary["thread_id"], include=["ttl"])
    assert shown["ttl"]["ttl_minutes"] == 1
    await client.threads.update(temporary["thread_id"], metadata={}, ttl={"ttl": 0.001})
    await asyncio.to_thread(remover.sweep, Ages())

    assert not any(rows_of(kept[1], temporary["thread_id"]).values())
    assert await is_there(client, stays["thread_id"])


async def test_old_runs_and_events_go_but_the_last_run_of_a_thread(
    client: LangGraphClient, remover: Remover
) -> None:
    thread = await make(client, "echo", "one")
    await client.runs.join(thread, (await client.runs.create(thread, "echo", input=say("two")))["run_id"])
    newest, oldest = await client.runs.list(thread)

    await asyncio.to_thread(remover.sweep, Ages(events=0))
    seen = [part async for part in client.runs.join_stream(thread, oldest["run_id"], last_event_id="-1")]
    await asyncio.to_thread(remover.sweep, Ages(runs=0))

    assert seen == []
    assert [each["run_id"] for each in await client.runs.list(thread)] == [newest["run_id"]]
    state: Any = await client.threads.get_state(thread)
    assert len(state["values"]["messages"]) == 4


async def test_of_runs_that_waited_for_a_worker_nothing_is_left_in_its_queue(
    client: LangGraphClient, remover: Remover, kept: tuple[str, str]
) -> None:
    """Not of those that ran, nor of those that had ended when their time came."""
    ran, ended = [(await client.threads.create())["thread_id"] for _ in range(2)]
    later = [
        await client.runs.create(thread, "echo", input=say("later"), after_seconds=1)
        for thread in (ran, ended)
    ]
    await client.runs.cancel(ended, later[1]["run_id"])
    await client.runs.join(ran, later[0]["run_id"])

    with closing(RunQueue(sa.make_url(kept[1]))) as queue:
        names = {run["run_id"] for run in later}
        while {status for run, status in _list_queued(queue) if run in names} != {"SUCCESS"}:
            await asyncio.sleep(0.1)
        await asyncio.to_thread(remover.sweep, ALL)
        assert not {run for run, _ in _list_queued(queue)} & names


def _list_queued(queue: RunQueue) -> list[tuple[str, str]]:
    return [(each.workflow_id.partition(":")[0], each.status) for each in queue.client.list_workflows()]


async def test_former_states_go_and_the_present_one_can_be_read(client: LangGraphClient) -> None:
    """Also where a state is saved as changes: what it needs of the ones before stays."""
    plain, changes = await make(client, "echo", "hello"), (await client.threads.create())["thread_id"]
    for number in range(8):
        await client.runs.wait(changes, "notes", input={"notes": [str(number)]})
    asking = await make(client, "echo", "ask why")
    history = await client.threads.get_history(changes, limit=100)

    pruned = await client.threads.prune([plain, changes, asking, NOBODY], strategy="keep_latest")

    assert pruned == {"pruned_count": 2}
    assert len(await client.threads.get_history(plain, limit=100)) == 1
    assert len(await client.threads.get_history(changes, limit=100)) < len(history) / 2
    await client.runs.wait(changes, "notes", input={"notes": ["more"]})
    state: Any = await client.threads.get_state(changes)
    assert state["values"]["notes"] == [*map(str, range(8)), "more"]
    assert await client.threads.prune([plain, asking]) == {"pruned_count": 1}
    assert await is_there(client, asking)


def rows_of(database: str, thread: str) -> dict[str, int]:
    """Count the rows of a thread in every table."""
    made = sa.make_url(database)
    engine = sa.create_engine(
        made if made.drivername == "sqlite" else made.set(drivername="postgresql+psycopg")
    )
    tables = ["threads", "runs", "checkpoints"]
    tables += ["writes"] if made.drivername == "sqlite" else ["checkpoint_writes", "checkpoint_blobs"]
    with engine.connect() as connection:
        counted = {
            name: connection.execute(
                sa.text(f"SELECT count(*) FROM {name} WHERE thread_id = :thread"), {"thread": thread}
            ).scalar_one()
            for name in tables
        }
    engine.dispose()
    return counted
