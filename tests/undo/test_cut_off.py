"""Going back happens whole, or not at all, though it is cancelled, refused, or cut off by a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.memory import MemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.checkpoints import LAST_ID
from deepagents.testing import ScriptedModel, call
from deepagents.undo import FileHistory, PlanOutdated, UndoError
from tests.conftest import CallMode
from tests.programs import FORKING
from tests.undo.workshop import Workshop, die_noticed, held, listed, names

SECOND: Any = {"configurable": {"thread_id": "2"}}


class Saver(MemorySaver):
    """Does something before it reads, or before or after it saves the checkpoint that going back makes."""

    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    on_read: Callable[[], object] | None = None

    def get_tuple(self, config: Any) -> Any:
        if self.on_read:
            self.on_read()
        return super().get_tuple(config)

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


@pytest.mark.parametrize("conversation", [True, False], ids=["both", "files"])
def test_a_thread_that_goes_on_during_the_check_keeps_its_files(
    shop: Workshop, saver: Saver, *, conversation: bool
) -> None:
    start = shop.write("a.txt", "1\n")
    plan = shop.plan(start)
    reads = 0

    def go_on() -> None:
        nonlocal reads
        reads += 1
        if reads == 2:
            saver.on_read = None
            shop.agent.update_state(shop.thread, {"messages": "Meanwhile"})

    saver.on_read = go_on
    with pytest.raises(PlanOutdated, match="gone on"):
        shop.mode.call(shop.history, "rewind", shop.agent, plan, conversation=conversation)
    assert (reads, (shop.root / "a.txt").read_text()) == (2, "1\n")
    assert listed(shop.root) == ["a.txt"]
    shop.rewind(start, conversation=conversation)
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


def test_what_could_not_be_put_back_is_named_and_goes_back_later(shop: Workshop) -> None:
    for name in ("a.txt", "busy.txt", "c.txt"):
        (shop.root / name).write_text("mine\n")
    start = shop.run("for i in a busy c; do echo agent > $i.txt; done; echo 1 > new.txt")
    busy = shop.root / "busy.txt"
    with held(busy):
        done = shop.rewind(start)
        assert names_of(done.changed) == ["a.txt", "c.txt", "new.txt"]
        assert names_of(done.failed) == ["busy.txt"]
        assert busy.read_text() == "agent\n"
    # Again at once, or forth first, as in a conversation, where the message is gone.
    again = shop.rewind(start)
    assert (names_of(again.changed), again.failed) == (["busy.txt"], ())
    shop.rewind(again)
    shop.rewind(done)
    assert (shop.root / "a.txt").read_text() == busy.read_text() == "agent\n"
    assert shop.rewind(start).failed == ()
    assert {each.read_text() for each in shop.root.iterdir()} == {"mine\n"}


def names_of(paths: tuple[Path, ...]) -> list[str]:
    return sorted(each.name for each in paths)


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


def go_back(path: Path, start: Any) -> None:
    with asyncio.Runner() as runner, SqliteSaver.from_conn_string(str(path / "threads.db")) as saver:
        Workshop(CallMode("sync", runner), path, saver=saver).rewind(start)


def test_a_process_whose_clock_is_behind_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asyncio.Runner() as runner, SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        shop = Workshop(CallMode("sync", runner), tmp_path, saver=saver)
        (shop.root / "a.txt").write_text("0\n")
        # The ids of later tests are to follow the right clock.
        monkeypatch.setitem(vars(ids), LAST_ID, vars(ids)[LAST_ID])
        an_hour_on = time.time_ns() + 3600 * 10**9
        with monkeypatch.context() as ahead:
            ahead.setattr(time, "time_ns", lambda: an_hour_on)
            start = shop.write("a.txt", "1\n")
        child = FORKING.Process(target=go_back, args=(tmp_path, start))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert ((shop.root / "a.txt").read_text(), shop.messages()) == ("0\n", [])


def found_left(shop: Workshop, said: list[str]) -> str:
    """Return the checkpoint where the thread stood before it went back."""
    for state in shop.agent.get_state_history(shop.thread):
        if [each.text for each in state.values.get("messages", ())] == said:
            return state.config["configurable"]["checkpoint_id"]
    raise AssertionError(said)


def make_other(shop: Workshop, model: ScriptedModel, tool: Any = None) -> Any:
    """Make an agent in the same directory, as another process has it."""
    history = FileHistory(shop.history.directory)
    agent = create_deep_agent(
        model,
        backend=LocalShellBackend(shop.root),
        checkpointer=MemorySaver(),
        file_history=history,
        tools=[tool] if tool else [],
    )
    history.coverage(agent)
    return agent


def test_a_step_that_begins_after_the_check_is_found(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    start = shop.run("mkdir d")
    plan = shop.plan(start)
    runs, may_end = Event(), Event()

    def wait() -> str:
        """Wait."""
        runs.set()
        assert may_end.wait(60)
        return "ok"

    other = make_other(shop, ScriptedModel(call("wait"), "Done."), wait)
    list_names = os.listdir
    with ThreadPoolExecutor() as pool:

        def begin_before(path: Any = ".") -> list[str]:
            # What is in a directory is asked once all else is known.
            if not runs.is_set():
                running.append(pool.submit(other.invoke, {"messages": "Go"}, SECOND))
                assert runs.wait(60)
            return list_names(path)

        running: list[Future[Any]] = []
        monkeypatch.setattr(os, "listdir", begin_before)
        try:
            with pytest.raises(UndoError, match="under way"):
                shop.mode.call(shop.history, "rewind", shop.agent, plan)
        finally:
            may_end.set()
        running[0].result(60)
    assert listed(shop.root) == ["a.txt", "d"]
    shop.rewind(start)
    assert listed(shop.root) == ["a.txt"]


def test_a_step_waits_for_what_begins_during_its_look(
    shop: Workshop, saver: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = shop.write("a.txt", "1\n")
    plan = shop.plan(start)
    other = make_other(shop, ScriptedModel(call("execute", command="cat a.txt > seen.txt"), "Done."))
    is_going, scan = Event(), os.scandir
    going: list[Future[Any]] = []

    def hold() -> None:
        is_going.set()
        # A step that does not wait is over by then.
        wait([running], timeout=1)

    with ThreadPoolExecutor() as pool:

        def go_back_before(*args: Any) -> Any:
            if not is_going.is_set() and not going:
                going.append(pool.submit(shop.history.rewind, shop.agent, plan))
                assert is_going.wait(60)
            return scan(*args)

        saver.before = hold
        monkeypatch.setattr(os, "scandir", go_back_before)
        running = pool.submit(other.invoke, {"messages": "Go"}, SECOND)
        running.result(60)
        assert going[0].result(60).failed == ()
    assert (shop.root / "seen.txt").read_text() == "0\n"


def test_what_a_look_keeps_stays_though_others_drop_what_nothing_needs(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 1_000_000
    for number in range(6):
        (shop.root / f"{number}.bin").write_bytes(os.urandom(size))
    other, read, kept = FileHistory(shop.history.directory), os.read, [*range(6)]

    def forget_at_the_last(fd: int, length: int) -> bytes:
        data = read(fd, length)
        # Contents are kept in batches; what refers to them comes last.
        if len(data) == size and kept and kept.pop() == 0:
            other.forget("another")
        return data

    monkeypatch.setattr(os, "read", forget_at_the_last)
    # Files as young as these are read again, which would hide what is meant here.
    ten_seconds_on = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: ten_seconds_on)
    shop.mode.call(shop.history, "coverage", shop.agent)
    assert not kept
    before = shop.tree()
    start = shop.run("rm *.bin")
    assert shop.plan(start).not_kept == ()
    shop.rewind(start)
    assert shop.tree() == before


def die_at_work(root: Path, directory: Path) -> None:
    def work() -> str:
        """Work."""
        (root / "outer").write_text("o")
        (root / "sub" / "inner").write_text("i")
        die_noticed(directory)
        return "dead"

    agent = create_deep_agent(
        ScriptedModel(call("work")),
        backend=LocalShellBackend(root),
        checkpointer=MemorySaver(),
        file_history=FileHistory(directory),
        tools=[work],
    )
    agent.invoke({"messages": "Go"}, {"configurable": {"thread_id": "1"}})


def test_a_step_that_died_ends_for_who_works_further_in(shop: Workshop) -> None:
    (shop.root / "sub").mkdir()
    inner = shop.make_agent(LocalShellBackend(shop.root / "sub"))
    shop.mode.call(shop.history, "coverage", inner)
    start = shop.run("true")
    child = FORKING.Process(target=die_at_work, args=(shop.root, shop.history.directory))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    first = shop.run("echo 1 > own", thread=SECOND, agent=inner)
    shop.run("echo 2 > own", thread=SECOND, agent=inner)
    plan = shop.plan(first, inner)
    assert (names(plan.removed, shop.root), plan.conflicts) == (["sub/own"], ())
    plan = shop.plan(start)
    assert (names(plan.removed, shop.root), plan.conflicts) == (["outer", "sub/inner"], ())
