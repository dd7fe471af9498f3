"""What is newest in a thread follows from no clock, and what is saved is saved whole."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from deepagents.checkpoints import LAST_ID, OrderedCheckpoints
from deepagents_cli.session.threads.driver import open_saver
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
_HOUR = 3600 * 10**7


@pytest.fixture(autouse=True)
def right_clock_for_later_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(ids), LAST_ID, vars(ids)[LAST_ID])


class Said(TypedDict):
    said: Annotated[list[str], operator.add]


class Saver(OrderedCheckpoints, InMemorySaver):
    pass


def make(saver: Any) -> Any:
    builder = StateGraph(Said)
    builder.add_node("keep", lambda state: {})
    builder.add_edge(START, "keep")
    return builder.compile(checkpointer=saver)


def an_hour_later(name: str) -> str:
    """Return an id that a machine makes whose clock is an hour ahead."""
    digits = name.replace("-", "")
    moment = int(digits[:12] + digits[13:16], 16) + _HOUR
    text = f"{moment:015x}"
    return f"{text[:8]}-{text[8:12]}-6{text[12:]}-{name[19:]}"


def write_ahead(saver: InMemorySaver, said: str) -> str:
    """Write as a machine does whose clock is an hour ahead; return the id of what was newest before."""
    before = InMemorySaver.get_tuple(saver, THREAD)
    assert before
    name = an_hour_later(str(ids.uuid6()))
    values = {"said": [*before.checkpoint["channel_values"]["said"], said]}
    versions = {**before.checkpoint["channel_versions"], "said": "9" * 32}
    written: Any = {
        **before.checkpoint,
        "id": name,
        "channel_values": values,
        "channel_versions": versions,
    }
    saver.put(before.config, written, {"source": "loop", "step": 9}, {"said": "9" * 32})
    return before.checkpoint["id"]


def test_a_turn_after_one_of_a_clock_that_is_ahead_is_kept(call_mode: CallMode) -> None:
    saver = Saver()
    graph = make(saver)
    call_mode.invoke(graph, {"said": ["first"]}, THREAD)
    write_ahead(saver, "ahead")

    call_mode.invoke(graph, {"said": ["last"]}, THREAD)

    assert call_mode.call(graph, "get_state", THREAD).values["said"] == ["first", "ahead", "last"]


def test_a_fork_of_what_is_older_becomes_the_newest(call_mode: CallMode) -> None:
    saver = Saver()
    graph = make(saver)
    call_mode.invoke(graph, {"said": ["first"]}, THREAD)
    older = write_ahead(saver, "ahead")

    fork: Any = {"configurable": {**THREAD["configurable"], "checkpoint_id": older}}
    call_mode.invoke(graph, {"said": ["fork"]}, fork)

    assert call_mode.call(graph, "get_state", THREAD).values["said"] == ["first", "fork"]
    assert saver.get_tuple({"configurable": {**THREAD["configurable"], "checkpoint_id": "no id"}}) is None


async def test_a_session_goes_on_after_the_clock_was_set_back(tmp_path: Path) -> None:
    saver = await open_saver(tmp_path / "threads.sqlite")
    try:
        graph = make(saver)
        await graph.ainvoke({"said": ["first"]}, THREAD)
        found: Any = await saver.aget_tuple(THREAD)
        name = found.checkpoint["id"]
        statements = [
            f"UPDATE {table} SET checkpoint_id = ? WHERE checkpoint_id = ?"
            for table in ("checkpoints", "writes")
        ]
        for statement in statements:
            await saver.conn.execute(statement, (an_hour_later(name), name))
        await saver.conn.commit()

        await graph.ainvoke({"said": ["last"]}, THREAD)

        assert (await graph.aget_state(THREAD)).values["said"] == ["first", "last"]
    finally:
        await saver.conn.close()


def is_locked(path: Path, patience: float) -> bool:
    with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        return False


def count_rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        tables = ("checkpoints", "writes")
        return sum(database.execute(f"SELECT count(*) FROM {each}").fetchone()[0] for each in tables)


async def test_a_change_that_is_cancelled_while_it_is_saved_locks_nobody_out(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    saver = await open_saver(path)
    caught = 0
    try:
        graph = make(saver)
        for number in range(30):
            config: Any = {"configurable": {"thread_id": str(number)}}
            change = asyncio.create_task(graph.aupdate_state(config, {"said": ["first"]}))
            while not (change.done() or is_locked(path, 0)):
                await asyncio.sleep(0)
            caught += change.cancel()
            await asyncio.wait([change])

            assert not await asyncio.to_thread(is_locked, path, 5)
        assert caught
    finally:
        await saver.conn.close()


async def test_a_change_that_fails_is_not_in_the_way_of_the_next(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    saver = await open_saver(path)
    await saver.conn.execute("PRAGMA busy_timeout = 0")
    try:
        graph = make(saver)
        await graph.ainvoke({"said": ["first"]}, THREAD)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                await graph.aupdate_state(THREAD, {"said": ["lost"]})
            assert (await graph.aget_state(THREAD)).values["said"] == ["first"]
            other.execute("CREATE TABLE of_others (number)")
            other.execute("COMMIT")

        await graph.aupdate_state(THREAD, {"said": ["last"]})
        assert (await graph.aget_state(THREAD)).values["said"] == ["first", "last"]
    finally:
        await saver.conn.close()


async def test_changes_that_were_cancelled_are_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    saver = await open_saver(path)
    try:
        graph = make(saver)
        await graph.ainvoke({"said": ["first"]}, THREAD)
        kept = count_rows(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            change = asyncio.create_task(graph.aupdate_state(THREAD, {"said": ["last"]}))
            while not saver.conn.in_transaction:
                await asyncio.sleep(0)
            change.cancel()
            await asyncio.wait([change])
            waiting = asyncio.create_task(saver.wait_for_changes())
            await asyncio.sleep(0)
            assert not waiting.done()
            other.execute("COMMIT")
        await waiting
        assert count_rows(path) > kept
    finally:
        await saver.conn.close()
