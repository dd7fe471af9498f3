"""Going back happens whole, or not at all, though it is cancelled, refused, or cut off by a kill."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

from deepagents.undo import UndoError
from tests.conftest import CallMode
from tests.undo.workshop import Workshop, listed

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
