"""A history that cannot be used for a while misses what was done meanwhile, says so, and goes on."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver

from deepagents._async import start_thread
from deepagents.testing import call
from deepagents.undo import FileHistory, UndoError
from tests.conftest import CallMode
from tests.undo.workshop import Neighbour, Workshop, listed, mounted, names

pytestmark = pytest.mark.slow

SOON = 0.3
"""Seconds until a loop does something for which all others wait: never, if one of these holds the loop."""


@pytest.fixture
def told() -> list[str | None]:
    return []


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path, told: list[str | None]) -> Workshop:
    shop = Workshop(call_mode, tmp_path, report=told.append)
    (shop.root / "mine.txt").write_text("mine\n")
    return shop


def renewed(shop: Workshop) -> Any:
    """Return an agent with a history of its own in the same directory, as a next process has."""
    shop.history.close()
    shop.history = FileHistory(shop.history.directory)
    return shop.make_agent()


# Each of the steps that meet a neighbour waits for ten seconds, and does nothing meanwhile.
@pytest.mark.parametrize(
    ("call_mode", "next_process"), [("sync", False), ("async", True)], indirect=["call_mode"]
)
def test_a_step_beside_a_greedy_neighbour_is_missed_and_the_next_is_not(
    shop: Workshop, told: list[str | None], *, next_process: bool
) -> None:
    start = shop.run("echo 1 > first.txt")
    neighbour = Neighbour(shop.history.directory)
    shop.run("echo agent > mine.txt; echo 1 > missed.txt; echo 2 >> first.txt")
    assert len(told) == 1
    assert "cannot be used: database is locked" in str(told[0])
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.commands, covered.why) == (False, False, told[0])
    with pytest.raises(UndoError, match="database is locked"):
        shop.plan(start)
    neighbour.let_go()

    agent = renewed(shop) if next_process else shop.agent
    shop.run("echo 1 > later.txt", agent=agent)
    plan = shop.plan(start, agent)
    assert names(plan.removed, shop.root) == ["later.txt"]
    assert names(plan.conflicts, shop.root) == ["first.txt", "mine.txt", "missed.txt"]
    assert {each.reason for each in plan.conflicts} == {
        "changed by others, or by a step of this thread that could not be recorded"
    }
    said = (
        "a step of this thread could not be recorded (database is locked), and what it changed stays as it is"
    )
    assert plan.uncovered.count(said) == 1
    assert next_process or told[1:] == [None]

    done = shop.rewind(start, agent)
    assert (shop.root / "mine.txt").read_text() == "agent\n"
    assert not (shop.root / "later.txt").exists()
    shop.rewind(done, agent)
    shop.mode.call(shop.history, "rewind", agent, shop.plan(start, agent), conflicts="take")
    assert shop.tree() == {"mine.txt": ("file", 0o644, b"mine\n")}


@pytest.mark.parametrize("call_mode", ["async"], indirect=True)
def test_what_was_missed_last_is_said_by_the_next_process(shop: Workshop) -> None:
    start = shop.run("echo 1 > first.txt")
    neighbour = Neighbour(shop.history.directory)
    shop.write("missed.txt", "1\n")
    neighbour.let_go()

    agent = renewed(shop)
    for _ in range(2):
        plan = shop.plan(start, agent)
        assert names(plan.removed, shop.root) == ["first.txt"]
        assert names(plan.conflicts, shop.root) == ["missed.txt"]
        assert sum("could not be recorded" in each for each in plan.uncovered) == 1
    shop.history.forget("1")
    shop.history.close()
    with closing(sqlite3.connect(shop.history.directory / "files.db")) as database:
        assert "'1'" not in "".join(database.iterdump())


class Locking(AgentMiddleware):
    """Lets another process hold the file of a history behind each call of a tool."""

    def __init__(self, history: Path) -> None:
        super().__init__()
        self._history = history
        self.neighbours: list[Neighbour] = []

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        result = handler(request)
        self.neighbours.append(Neighbour(self._history))
        return result

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        result = await handler(request)
        self.neighbours.append(Neighbour(self._history))
        return result


@pytest.mark.parametrize(
    ("call_mode", "reply"),
    [
        pytest.param("sync", call("execute", command="echo agent > mine.txt"), id="command"),
        pytest.param("async", call("write_file", file_path="/mine.txt", content="agent\n"), id="file tool"),
    ],
    indirect=["call_mode"],
)
def test_a_step_whose_end_was_not_recorded_goes_back_later(
    shop: Workshop, told: list[str | None], reply: AIMessage
) -> None:
    locking = Locking(shop.history.directory)
    agent = shop.make_agent(middleware=[locking])
    start = shop.do(reply, agent=agent)
    assert len(told) == 1
    locking.neighbours[0].let_go()
    agent = shop.agent
    plan = shop.plan(start, agent)
    assert names(plan.restored, shop.root) == ["mine.txt"]
    assert any("recorded late (database is locked)" in each for each in plan.uncovered)
    later = shop.run("echo 1 > later.txt", agent=agent)
    assert names(shop.plan(later, agent).removed, shop.root) == ["later.txt"]
    assert names(shop.plan(later, agent).restored, shop.root) == []


class HeldForAMoment(AgentMiddleware):
    """Lets another process hold the file of a history behind a call, until the loop has a moment."""

    def __init__(self, history: Path) -> None:
        super().__init__()
        self._history = history

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        result = await handler(request)
        asyncio.get_running_loop().call_later(SOON, Neighbour(self._history).let_go)
        return result


@pytest.mark.parametrize("background", [False, True])
def test_a_run_that_waits_for_a_neighbour_lets_other_tasks_go_on(
    tmp_path: Path, told: list[str | None], *, background: bool
) -> None:
    with asyncio.Runner() as runner:
        shop = Workshop(CallMode("async", runner), tmp_path, report=told.append)
        agent = shop.make_agent(middleware=[HeldForAMoment(shop.history.directory)])
        shop.do(call("execute", command="echo 1 > a.txt", background=background), agent=agent)
    assert told == []


@pytest.mark.parametrize("method", ["plan", "changes", "recover", "note_copy"])
def test_who_waits_for_a_step_lets_other_tasks_go_on(tmp_path: Path, method: str) -> None:
    is_written, may_end = Event(), Event()

    def write(recorder: Any) -> bool:
        with recorder.store.write():
            is_written.set()
            return may_end.wait(10)

    async def ask() -> bool | None:
        writing = start_thread(lambda: shop.history.attempt(write))
        assert is_written.wait(60)
        asyncio.get_running_loop().call_later(SOON, may_end.set)
        await getattr(shop.history, f"a{method}")(shop.agent, start)
        return writing.result(60)

    with asyncio.Runner() as runner:
        shop = Workshop(CallMode("async", runner), tmp_path)
        start = shop.write("a.txt", "1\n")
        assert runner.run(ask())


class Away(MemorySaver):
    """Can be read no more once it is to write the checkpoint that going back makes."""

    is_away: Callable[[], object] | None = None

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if self.is_away:
            self.is_away()
            raise ConnectionError("the saver is away")
        return super().put(config, checkpoint, metadata, new_versions)

    def list(self, *args: Any, **named: Any) -> Any:
        if self.is_away:
            raise ConnectionError("the saver is away")
        return super().list(*args, **named)


def test_a_going_back_that_fails_lets_other_tasks_go_on(tmp_path: Path) -> None:
    is_written, may_end = Event(), Event()
    writing: list[Any] = []

    def write(recorder: Any) -> bool:
        with recorder.store.write():
            is_written.set()
            return may_end.wait(10)

    def hold() -> None:
        writing.append(start_thread(lambda: shop.history.attempt(write)))
        assert is_written.wait(60)
        asyncio.get_running_loop().call_later(SOON, may_end.set)

    with asyncio.Runner() as runner:
        shop = Workshop(CallMode("async", runner), tmp_path, saver=(saver := Away()))
        plan = shop.plan(shop.write("a.txt", "1\n"))
        saver.is_away = hold
        with pytest.raises(UndoError, match="whether it was is found out"):
            shop.mode.call(shop.history, "rewind", shop.agent, plan)
        assert writing[0].result(60)
        saver.is_away = None
        assert names(shop.plan(shop.head).removed, shop.root) == []
        assert listed(shop.root) == ["a.txt"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=2m") as place:
        yield place


def test_a_full_disk_that_gets_room_again_costs_what_was_done_meanwhile(
    call_mode: CallMode, tmp_path: Path, small_disk: Path
) -> None:
    told: list[str | None] = []
    shop = Workshop(call_mode, tmp_path, history=FileHistory(small_disk / "history", report=told.append))
    start = shop.run("echo 1 > first.txt")
    fill(small_disk / "others")
    for number in range(3):
        shop.run(f"head -c 150000 /dev/urandom > missed{number}.txt")
    assert len(told) == 1
    assert "full" in str(told[0])
    (small_disk / "others").unlink()
    shop.run("echo 1 > later.txt")
    assert told[1:] == [None]
    plan = shop.plan(start)
    assert names(plan.removed, shop.root) == ["first.txt", "later.txt"]
    assert names(plan.conflicts, shop.root) == [f"missed{number}.txt" for number in range(3)]
    assert any("could not be recorded" in each for each in plan.uncovered)
    shop.history.close()


def make_disk(image: Path) -> None:
    """Make a file system in a file."""
    if not (shutil.which("mkfs.ext4") and shutil.which("debugfs")):
        pytest.skip("there is no program that makes a file system, or none that breaks one")
    image.write_bytes(b"\0" * 4_000_000)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)


def test_a_broken_part_of_a_disk_takes_nothing_else_out_of_the_history(
    call_mode: CallMode, tmp_path: Path, told: list[str | None]
) -> None:
    image = tmp_path / "image"
    make_disk(image)
    with mounted(tmp_path / "project", "-o", "loop", source=image):
        shop = Workshop(call_mode, tmp_path, report=told.append)
        (shop.root / ".gitignore").write_text("*.log\n")
        start = shop.run("mkdir part; echo 1 > part/kept.txt; echo 1 > part.txt; echo 1 > whole.txt")
    # A directory and files of which the disk says no more than that there is something.
    set_mode(image, "0", "part", "part.txt", ".gitignore")
    with mounted(tmp_path / "project", "-o", "loop", source=image):
        with pytest.raises(OSError, match="clean"):
            (shop.root / "part").stat()
        later = shop.run("echo 2 > whole.txt")
        shop.run("echo 1 > new.txt; echo 1 > new.log; mkdir folder; echo 1 > folder/new.txt")
        assert told == []
        plan = shop.plan(later)
        assert names(plan.removed, shop.root) == ["folder", "folder/new.txt", "new.txt"]
        assert names(plan.restored, shop.root) == ["whole.txt"]
        assert not plan.conflicts
        shop.rewind(later)
        assert (shop.root / "whole.txt").read_text() == "1\n"
        assert names(shop.plan(start).not_kept, shop.root) == ["part", "part.txt", "part/kept.txt"]
        shop.history.close()


def set_mode(image: Path, mode: str, *names: str) -> None:
    """Write into a file system what it says of files; what has no mode cannot be read."""
    for name in names:
        command = ["debugfs", "-w", "-R", f"sif /{name} mode {mode}", image]
        subprocess.run(command, check=True, capture_output=True)


def test_what_could_not_be_read_at_first_is_taken_for_nobody_s_work(
    call_mode: CallMode, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    make_disk(image)
    with mounted(tmp_path / "project", "-o", "loop", source=image) as root:
        (root / "part").mkdir()
        for each in (root / "mine.txt", root / "part" / "mine.txt"):
            each.write_text("mine\n")
    set_mode(image, "0", "mine.txt", "part")
    with mounted(tmp_path / "project", "-o", "loop", source=image) as root:
        shop = Workshop(call_mode, tmp_path)
        start = shop.run("echo 1 > new.txt")
        modes = {"mine.txt": "0100644", "part": "040755"}
        repairs = [f"debugfs -w -R 'sif /{name} mode {mode}' {image}" for name, mode in modes.items()]
        repair = " && ".join([f"cd / && umount {root}", *repairs, f"mount -o loop {image} {root}"])
        shop.run(f"{repair} && echo 2 > {root}/new.txt")
        assert (root / "mine.txt").read_text() == (root / "part" / "mine.txt").read_text() == "mine\n"
        assert names(shop.plan(start).removed, shop.root) == ["new.txt"]
        shop.history.close()


def fill(path: Path) -> None:
    """Write until nothing more can be."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


@pytest.mark.parametrize("how", ["garbage", "version"])
def test_a_broken_history_stays_off_and_says_the_way_out(
    shop: Workshop, told: list[str | None], how: str
) -> None:
    shop.write("a.txt", "1\n")
    shop.history.close()
    path = shop.history.directory / "files.db"
    if how == "garbage":
        path.write_bytes(b"garbage" * 1000)
    else:
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA user_version = 99")
    for name in ("b", "c"):
        shop.write(f"{name}.txt", "1\n")
    assert len(told) == 1
    assert str(shop.history.directory) in str(told[0])
    assert "move that directory away while no agent runs, and a new history begins" in str(told[0])
    with pytest.raises(UndoError, match="move that directory away"):
        shop.plan(shop.thread)

    shop.history.directory.rename(shop.root.parent / "away")
    agent = renewed(shop)
    start = shop.write("d.txt", "1\n", agent=agent)
    assert names(shop.plan(start, agent).removed, shop.root) == ["d.txt"]


@pytest.mark.parametrize("first", ["plans", "runs"])
def test_a_history_that_is_gone_is_named_and_counts_again_once_it_is_back(
    shop: Workshop, told: list[str | None], first: str
) -> None:
    start = shop.run("echo agent > mine.txt; echo 1 > first.txt")
    shop.history.close()
    directory, away = shop.history.directory, shop.root.parent / "away"
    directory.rename(away)
    agent, sentence = renewed(shop), f"the history in {directory} is not the one that recorded"
    if first == "plans":
        assert shop.plan(shop.thread, agent).uncovered == ()
        assert names_of_all(shop.plan(start, agent)) == []
    later = shop.run("echo 1 > later.txt", agent=agent)
    for target, count in ((start, 1), (later, 0)):
        plan = shop.plan(target, agent)
        assert names(plan.removed, shop.root) == ["later.txt"]
        assert sum(sentence in each for each in plan.uncovered) == count
    shop.rewind(start, agent)
    assert (shop.root / "mine.txt").read_text() == "agent\n"
    assert told == []

    shop.history.close()
    directory.rename(directory.with_name("second"))
    away.rename(directory)
    agent = renewed(shop)
    plan = shop.plan(start, agent)
    assert names(plan.restored, shop.root) == ["mine.txt"]
    assert names(plan.removed, shop.root) == ["first.txt"]


def test_two_histories_in_turn_each_take_back_their_own_turns(shop: Workshop) -> None:
    second = FileHistory(shop.root.parent / "second")
    other = shop.make_agent(file_history=second)
    starts = [
        shop.run(f"echo {number} > turn{number}.txt; echo {number} > each.txt", agent=agent)
        for number, agent in enumerate([shop.agent, other] * 3)
    ]
    own_history: Any = {0: (shop.history, shop.agent), 1: (second, other)}
    for each in shop.saver.list({"configurable": {**shop.thread["configurable"], "checkpoint_ns": ""}}):
        turn = sum(is_before(start, each.config) for start in starts) - 1
        for own, (history, agent) in own_history.items():
            if each.config == shop.head or (turn % 2 == own and each.config not in starts):
                continue
            plan = shop.mode.call(history, "plan", agent, each.config)
            assert names(plan.removed, shop.root) == [f"turn{n}.txt" for n in range(turn, 6) if n % 2 == own]
            # What the other one has recorded is not known, and that is said.
            said = [each for each in plan.uncovered if "is not the one that recorded" in each]
            assert len(said) == (turn < 5 or own == 0)
    second.close()


def is_before(start: Any, target: Any) -> bool:
    """Return whether a turn began at a checkpoint, or before it."""
    return start["configurable"]["checkpoint_id"] <= target["configurable"]["checkpoint_id"]


def names_of_all(plan: Any) -> list[str]:
    assert sum("move it back while no agent runs" in each for each in plan.uncovered) == 1
    return [each.path.name for each in (*plan.restored, *plan.removed, *plan.conflicts, *plan.not_kept)]


def test_a_second_history_of_a_process_leaves_the_file_locked_for_the_first(shop: Workshop) -> None:
    shop.run("echo 1 > first.txt")
    second = FileHistory(shop.history.directory)
    shop.mode.call(second, "coverage", shop.make_agent(file_history=second))
    alone = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('PRAGMA journal_mode = DELETE')"
    )
    taken = [sys.executable, "-c", alone, str(shop.history.directory / "files.db")]
    done = subprocess.run(taken, capture_output=True, text=True, check=False)
    second.close()

    # Who believes to be alone with the file would take its log away from the others.
    assert "database is locked" in done.stderr
