"""Turns that are stopped at any moment: each one tells how it ended, and the next one begins."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel
from deepagents_cli.approval.policy import Policy
from deepagents_cli.protocol import Idle
from deepagents_cli.session.threads.driver import Driver
from deepagents_cli.session.threads.record import Record
from deepagents_cli.session.turns.asking import Asking
from deepagents_cli.session.turns.inbox import Inbox
from deepagents_cli.session.turns.turns import Turns
from tests.cli.approval.test_policy import make_files


class SlowDriver(Driver):
    """Waits in one reading of the thread until the test goes on, or fails there."""

    def __init__(self, agent: Any, at: int, failure: Exception | None = None) -> None:
        super().__init__(agent, "thread", lambda _: None)
        self.left, self.failure = at, failure
        self.reading, self.go = asyncio.Event(), asyncio.Event()

    async def read(self) -> Any:
        self.left -= 1
        if self.left == 0:
            self.reading.set()
            await self.go.wait()
            if self.failure:
                raise self.failure
        return await super().read()


class Thread:
    """A thread with a driver, its turns, and how they ended."""

    def __init__(
        self, directory: Path, record: Record, at: int = 0, failure: Exception | None = None
    ) -> None:
        self.said: asyncio.Queue[Any] = asyncio.Queue()
        agent = create_deep_agent(ScriptedModel("Hello.", "Hello again."), checkpointer=InMemorySaver())
        self.driver = SlowDriver(agent, at, failure)
        policy = Policy(make_files(directory), directory)
        asking = Asking(self.said.put_nowait, policy, lambda _: None)
        self.inbox = Inbox(record, "thread", [], lambda _: None, lambda _: None)
        self.turns = Turns(self.driver, self.inbox, asking, self.said.put_nowait, lambda *_: None)

    async def wait_for_end(self) -> Idle:
        while not isinstance(message := await asyncio.wait_for(self.said.get(), 30), Idle):
            pass
        return message


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    kept = Record(tmp_path / "sessions.db")
    yield kept
    kept.close()


async def test_esc_while_the_end_of_a_turn_is_saved_leaves_nothing_working(
    tmp_path: Path, record: Record
) -> None:
    # The first reading is before the message is sent.
    thread = Thread(tmp_path, record, at=2)
    await thread.inbox.put("Hi.", "Hi.")
    thread.turns.begin()
    await thread.driver.reading.wait()
    thread.turns.stop()
    thread.driver.go.set()

    assert (await thread.wait_for_end()).end == "stopped"
    await thread.inbox.put("Again.", "Again.")
    thread.turns.begin()
    assert (await thread.wait_for_end()).end == "done"
    state = await thread.driver.read()
    assert [each.text for each in state.values["messages"]] == ["Hi.", "Hello.", "Again.", "Hello again."]


async def test_a_turn_that_is_stopped_before_its_first_step_keeps_the_text(
    tmp_path: Path, record: Record
) -> None:
    thread = Thread(tmp_path, record)
    await thread.inbox.put("Hi.", "Hi.")
    thread.turns.begin()
    thread.turns.stop()

    assert (await thread.wait_for_end()).end == "stopped"
    assert thread.inbox.texts == ["Hi."]
    thread.turns.begin()
    assert (await thread.wait_for_end()).end == "done"


async def test_a_turn_whose_end_cannot_be_saved_says_so(tmp_path: Path, record: Record) -> None:
    thread = Thread(tmp_path, record, at=2, failure=sqlite3.OperationalError("database or disk is full"))
    thread.driver.go.set()
    await thread.inbox.put("Hi.", "Hi.")
    thread.turns.begin()

    ended = await thread.wait_for_end()
    assert ended.end == "failed"
    assert "full" in str(ended.error)
    assert not thread.turns.is_working
