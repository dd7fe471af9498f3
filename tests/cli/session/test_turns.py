"""Turns that are stopped at any moment: each one tells how it ended, and the next one begins."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.events import Event
from deepagents.testing import ScriptedModel, call
from deepagents_cli.approval.policy import Policy
from deepagents_cli.protocol import Idle, Notice, Queued, Stop
from deepagents_cli.session.threads.driver import Driver, Show, open_saver
from deepagents_cli.session.threads.record import Record
from deepagents_cli.session.turns.asking import Asking
from deepagents_cli.session.turns.inbox import Inbox
from deepagents_cli.session.turns.turns import RunningCalls, Turns
from tests.cli.approval.test_policy import make_files
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import OpenAIServer
from tests.cli.openai_server import call as call_of_model
from tests.cli.session.conftest import Worker
from tests.sandbox.users import find_processes
from tests.waiting import until


class SlowDriver(Driver):
    """Waits in one reading of the thread until the test goes on, or fails there."""

    def __init__(self, agent: Any, at: int, failure: Exception | None, show: Show) -> None:
        super().__init__(agent, "thread", show)
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
        self,
        directory: Path,
        record: Record,
        at: int = 0,
        failure: Exception | None = None,
        agent: Any = None,
        calls: RunningCalls | None = None,
        patience: float = 30,
    ) -> None:
        self.said: asyncio.Queue[Any] = asyncio.Queue()
        self.notices: list[Notice] = []
        self.events: list[Event] = []
        agent = agent or create_deep_agent(
            ScriptedModel("Hello.", "Hello again."), checkpointer=InMemorySaver()
        )
        self.driver = SlowDriver(agent, at, failure, self.events.append)
        policy = Policy(make_files(directory), directory)
        asking = Asking(self.said.put_nowait, policy, lambda _: None)
        self.inbox = Inbox(record, "thread", [], lambda _: None, lambda _: None)
        self.turns = Turns(
            self.driver,
            self.inbox,
            asking,
            calls or RunningCalls(),
            self.said.put_nowait,
            lambda *_: None,
            patience=patience,
        )

    async def wait_for_end(self) -> Idle:
        while not isinstance(message := await asyncio.wait_for(self.said.get(), 30), Idle):
            if isinstance(message, Notice):
                self.notices.append(message)
        return message


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    kept = Record(tmp_path / "sessions.db")
    yield kept
    kept.close()


async def test_a_text_is_told_as_waiting_before_it_is_read(record: Record, tmp_path: Path) -> None:
    told: list[list[str]] = []
    inbox = Inbox(record, "thread", [], lambda texts: told.append([*texts]), lambda _: None)
    with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        putting = asyncio.create_task(inbox.put("Hi.", "Hi."))
        await asyncio.sleep(0)

        # The agent comes to its next step while the text is saved.
        assert inbox.hand_over() == []

        another.execute("COMMIT")
        await putting
    assert told == [["Hi."]]
    assert [each.text for each in inbox.hand_over()] == ["Hi."]
    assert told == [["Hi."], []]


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


class Stubborn:
    """A tool that ends when it is let go, whoever cancels it, or at the cancellation of this number."""

    def __init__(self, ends_at: int | None = None) -> None:
        self.begun, self.let_go, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.cancelled: asyncio.Queue[int] = asyncio.Queue()
        self._ends_at = ends_at

    def as_tool(self) -> BaseTool:
        async def dig() -> str:
            """Dig a hole."""
            self.begun.set()
            count = 0
            try:
                while not self.let_go.is_set():
                    try:
                        await self.let_go.wait()
                    except asyncio.CancelledError:
                        count += 1
                        self.cancelled.put_nowait(count)
                        if count == self._ends_at:
                            raise
                return "A hole."
            finally:
                self.ended.set()

        return tool(dig)


async def wait_for_all_others() -> None:
    """Wait until nothing else runs in this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    _, pending = await asyncio.wait(others, timeout=30) if others else ((), ())
    assert not pending


@asynccontextmanager
async def digging(
    directory: Path, record: Record, stubborn: Stubborn, patience: float
) -> AsyncGenerator[Thread]:
    """Begin a turn in which the agent calls a tool, in a thread that is kept as in a session."""
    saver = await open_saver(directory / "checkpoints.db")
    try:
        calls = RunningCalls()
        model = ScriptedModel(call("dig"), "On I go.")
        agent = create_deep_agent(model, tools=[stubborn.as_tool()], middleware=[calls], checkpointer=saver)
        thread = Thread(directory, record, agent=agent, calls=calls, patience=patience)
        await thread.inbox.put("Dig.", "Dig.")
        thread.turns.begin()
        await asyncio.wait_for(stubborn.begun.wait(), 30)
        yield thread
    finally:
        stubborn.let_go.set()
        await asyncio.wait_for(stubborn.ended.wait(), 30)
        await saver.conn.close()


async def test_a_stop_that_was_swallowed_can_be_pressed_again(tmp_path: Path, record: Record) -> None:
    stubborn = Stubborn(ends_at=2)
    async with digging(tmp_path, record, stubborn, patience=60) as thread:
        thread.turns.stop()
        assert await stubborn.cancelled.get() == 1
        thread.turns.stop()

        assert (await thread.wait_for_end()).end == "stopped"
        assert await stubborn.cancelled.get() == 2
        assert thread.notices == []


async def test_a_stop_that_was_swallowed_comes_again_by_itself(tmp_path: Path, record: Record) -> None:
    stubborn = Stubborn(ends_at=2)
    async with digging(tmp_path, record, stubborn, patience=0.1) as thread:
        thread.turns.stop()

        assert (await thread.wait_for_end()).end == "stopped"
        assert thread.notices == []


async def test_what_is_sent_behind_a_stop_that_was_swallowed_is_worked_on(
    tmp_path: Path, record: Record
) -> None:
    stubborn = Stubborn(ends_at=2)
    async with digging(tmp_path, record, stubborn, patience=0.1) as thread:
        await thread.inbox.put("Go on.", "Go on.")
        thread.turns.stop()
        thread.turns.begin()

        assert (await thread.wait_for_end()).end == "stopped"
        assert (await thread.wait_for_end()).end == "done"
        assert thread.notices == []


async def test_what_ignores_every_stop_is_left_behind_and_says_nothing_more(
    tmp_path: Path, record: Record
) -> None:
    stubborn = Stubborn()
    async with digging(tmp_path, record, stubborn, patience=0.1) as thread:
        for _ in range(5):
            thread.turns.stop()
        assert (await thread.wait_for_end()).end == "stopped"
        assert [each.text[:31] for each in thread.notices] == ["What was stopped does not end. "]

        await thread.inbox.put("Go on.", "Go on.")
        thread.turns.begin()
        assert (await thread.wait_for_end()).end == "done"
        shown = len(thread.events)
        before = await thread.driver.read()
        stubborn.let_go.set()
        await wait_for_all_others()
        after = await thread.driver.read()

        texts = [each.text for each in after.values["messages"]]
        assert texts[0] == "Dig."
        assert texts[-2:] == ["Go on.", "On I go."]
        assert "A hole." not in texts
        assert before.config == after.config
        assert len(thread.events) == shown


@needs_sandbox
def test_five_stops_in_a_row_end_a_command_and_the_prompt_is_back(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    server.then(call_of_model("execute", command="touch begun; sleep 600.25"), "On I go.")
    worker.open(mode="auto")
    worker.say("Build.")
    until((directory / "begun").exists)
    for _ in range(5):
        worker.send(Stop())

    assert worker.wait(Idle).end == "stopped"
    assert worker.all(Notice) == []
    # They were killed, and a busy machine takes its time to end them.
    until(lambda: find_processes("sleep 600.25") == [])
    assert worker.turn("Go on.").end == "done"


def test_a_stop_right_behind_a_text_stops_its_turn_and_the_text_is_kept(
    worker: Worker, server: OpenAIServer
) -> None:
    worker.open()
    worker.say("Build.")
    worker.send(Stop())

    assert worker.wait(Idle).end == "stopped"
    assert server.requests == []
    # On a slow machine it is in the thread by then.
    assert worker.last(Queued).texts in (["Build."], [])
    server.then("Built.")
    assert worker.turn("").end == "done"
    assert server.requests[-1].texts("user") == ["Build."]
