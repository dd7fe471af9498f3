"""Going back happens whole, or not at all, though it is cancelled, refused, or cut off by a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents.undo import UndoError
from tests.conftest import CallMode
from tests.programs import FORKING
from tests.undo.workshop import Workshop, listed, names

SECOND: Any = {"configurable": {"thread_id": "2"}}


class Saver(MemorySaver):
    """Does something before, or after, it saves the checkpoint that going back makes."""

    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        is_copy = metadata.get("source") == "fork"
        if is_copy and self.before:
            self.before()
        saved = super().put(config, checkpoint, metadata, new_versions)
        if is_copy and self.after:
            self.after()
        return saved


@pytest.fixture
def saver() -> Saver:
    return Saver()


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path, saver: Saver) -> Workshop:
    shop = Workshop(call_mode, tmp_path, saver=saver)
    (shop.root / "a.txt").write_text("0\n")
    return shop


def refuse() -> None:
    raise ConnectionError("the saver is away")


def test_a_checkpoint_that_cannot_be_written_leaves_all_as_it_was(shop: Workshop, saver: Saver) -> None:
    start = shop.write("a.txt", "1\n")
    said = shop.messages()
    saver.before = refuse
    with pytest.raises(UndoError, match="the saver is away; nothing has changed"):
        shop.rewind(start)
    assert (listed(shop.root), shop.messages()) == (["a.txt"], said)
    saver.before = None
    shop.rewind(start)
    assert (shop.root / "a.txt").read_text() == "0\n"


def test_a_checkpoint_that_was_written_counts_though_an_error_came_back(shop: Workshop, saver: Saver) -> None:
    start = shop.write("a.txt", "1\n")
    saver.after = refuse
    done = shop.rewind(start)
    assert done.config == shop.head
    assert (listed(shop.root), shop.messages()) == (["a.txt"], [])
    assert (shop.root / "a.txt").read_text() == "0\n"


def test_a_record_that_fails_is_made_later(shop: Workshop, saver: Saver) -> None:
    start = shop.write("a.txt", "1\n")
    said = shop.messages()
    with sqlite3.connect(shop.history.directory / "files.db", isolation_level=None) as database:
        full = "CREATE TRIGGER full BEFORE INSERT ON seen BEGIN SELECT RAISE(FAIL, 'disk full'); END"
        saver.after = lambda: database.execute(full)
        done = shop.rewind(start)
        assert (shop.root / "a.txt").read_text() == "0\n"
        assert (done.config, done.changed) == (shop.head, (shop.root / "a.txt",))
        database.execute("DROP TRIGGER full")
    database.close()
    saver.after = None
    shop.rewind(done)
    assert ((shop.root / "a.txt").read_text(), shop.messages()) == ("1\n", said)


def test_cancelled_it_has_happened_before_the_caller_goes_on(shop: Workshop, saver: Saver) -> None:
    start = shop.write("a.txt", "1\n")
    plan = shop.plan(start)

    async def cancel() -> None:
        going = asyncio.ensure_future(shop.history.arewind(shop.agent, plan))
        saver.after = going.cancel
        with pytest.raises(asyncio.CancelledError):
            await going
        assert (shop.root / "a.txt").read_text() == "0\n"
        assert listed(shop.root) == ["a.txt"]

    asyncio.run(cancel())
    assert shop.messages() == []


class Deadly(SqliteSaver):
    """Kills its process as soon as the checkpoint that going back makes is saved."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        saved = super().put(config, checkpoint, metadata, new_versions)
        if metadata.get("source") == "fork":
            os.kill(os.getpid(), signal.SIGKILL)
        return saved


def die_in_the_middle(path: Path, start: Any) -> None:
    with asyncio.Runner() as runner, Deadly.from_conn_string(str(path / "threads.db")) as saver:
        Workshop(CallMode("sync", runner), path, saver=saver).rewind(start)


@pytest.mark.parametrize("does", ["plans", "runs"])
def test_a_kill_is_finished_by_the_thread_that_comes_next(tmp_path: Path, does: str) -> None:
    with asyncio.Runner() as runner, SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        shop = Workshop(CallMode("sync", runner), tmp_path, saver=saver)
        (shop.root / "a.txt").write_text("0\n")
        start = shop.write("a.txt", "1\n")
        said = shop.messages()
        second = shop.write("b.txt", "2\n", thread=SECOND)
        child = FORKING.Process(target=die_in_the_middle, args=(tmp_path, start))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        assert (shop.root / "a.txt").read_text() == "1\n"
        if does == "runs":
            shop.run("cat a.txt > seen.txt", thread=SECOND)
            assert (shop.root / "seen.txt").read_text() == "0\n"
        assert "a.txt" not in names(shop.plan(second).conflicts, shop.root)
        assert (shop.root / "a.txt").read_text() == "0\n"
        assert not [each for each in listed(shop.root) if each.startswith(".")]
        # It was this thread's, and can be taken back: nobody else's change.
        plan = shop.plan({"configurable": {**start["configurable"], "checkpoint_id": found_left(shop, said)}})
        assert names(plan.restored, shop.root) == ["a.txt"]


def found_left(shop: Workshop, said: list[str]) -> str:
    """Return the checkpoint where the thread stood before it went back."""
    for state in shop.agent.get_state_history(shop.thread):
        if [each.text for each in state.values.get("messages", ())] == said:
            return state.config["configurable"]["checkpoint_id"]
    raise AssertionError(said)
