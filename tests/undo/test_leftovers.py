"""What undo says of what is gone, and what processes, forks and time leave behind."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.testing import ScriptedModel, call
from deepagents.undo import FileHistory, RewindResult, UndoBusy, UndoError
from deepagents.undo.processes import Processes
from deepagents.undo.steps import Directories
from tests.conftest import CallMode
from tests.programs import FORKING
from tests.undo.workshop import Workshop, listed, mounted, names

SECOND: Any = {"configurable": {"thread_id": "2"}}
DAY = 86_400


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path) -> Workshop:
    return Workshop(call_mode, tmp_path)


@contextmanager
def opened(shop: Workshop) -> Generator[sqlite3.Connection]:
    """Open the file of a history beside it."""
    path = shop.history.directory / "files.db"
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as database:
        yield database


def let_time_pass(shop: Workshop, days: float) -> None:
    """Let all records be so much older."""
    with opened(shop) as database:
        database.execute("UPDATE seen SET at = at - ?", [days * DAY])
        database.execute("UPDATE roots SET used = used - ?", [days * DAY])


# -- what was dropped


def test_each_path_of_a_dropped_record_is_named(shop: Workshop) -> None:
    start = shop.do(
        call("write_file", file_path="/gone.txt", content="1\n"),
        call("write_file", file_path="/twice.txt", content="1\n"),
    )
    shop.run("echo 2 > twice.txt; echo 2 > late.txt")
    let_time_pass(shop, 40)
    shop.write("last.txt", "3\n")
    # What it holds now is what the first record that is left had before.
    (shop.root / "twice.txt").write_text("1\n")
    shop.history.close()

    plan = shop.plan(start)
    dropped = {str(each.path.relative_to(shop.root)) for each in plan.not_kept if each.reason == "dropped"}
    assert dropped == {"gone.txt", "twice.txt", "late.txt"}
    assert names(plan.removed, shop.root) == ["last.txt"]
    assert [each for each in plan.uncovered if "dropped" in each]
    shop.rewind(start, conflicts="take")
    assert listed(shop.root) == ["gone.txt", "late.txt", "twice.txt"]


def test_what_cannot_go_forth_again_is_named(shop: Workshop) -> None:
    done = shop.rewind(shop.write("a.txt", "1\n"), conversation=False)
    shop.write("b.txt", "2\n")
    let_time_pass(shop, 40)
    shop.write("c.txt", "3\n")
    shop.history.close()
    assert [(each.path.name, each.reason) for each in shop.plan(done).not_kept] == [("a.txt", "dropped")]


def test_records_of_more_days_than_are_kept_go_but_for_the_newest(
    call_mode: CallMode, tmp_path: Path
) -> None:
    shop = Workshop(call_mode, tmp_path, max_age_days=2)
    first = shop.write("a.txt", "1\n")
    second = shop.write("b.txt", "2\n")
    third = shop.write("c.txt", "3\n")
    let_time_pass(shop, 1)
    shop.history.close()
    assert names(shop.plan(first).removed, shop.root) == ["a.txt", "b.txt", "c.txt"]
    let_time_pass(shop, 2)
    shop.history.close()
    assert names(shop.plan(third).removed, shop.root) == ["c.txt"]
    assert names(shop.plan(second).not_kept, shop.root) == ["b.txt"]


def test_age_counts_while_a_process_lives(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shop.write("a.txt", "1\n")
    shop.write("b.txt", "2\n")
    let_time_pass(shop, 40)
    shop.write("c.txt", "3\n")
    assert names(shop.plan(first).removed, shop.root) == ["a.txt", "b.txt", "c.txt"]
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3_700)
    shop.write("d.txt", "4\n")
    assert names(shop.plan(first).not_kept, shop.root) == ["a.txt", "b.txt"]


def test_what_is_not_known_of_a_going_back_is_said(shop: Workshop) -> None:
    start = shop.do(
        call("write_file", file_path="/a.txt", content="1\n"),
        call("write_file", file_path="/b.txt", content="1\n"),
    )
    done = shop.rewind(start)
    # As it is known over HTTP, and from the sessions of a terminal: by its name.
    named = RewindResult(done.left, done.left, rewind=done.rewind, moved=True)
    said = "not all is known any more that this going back has changed, and the rest stays as it is"
    assert shop.plan(named).uncovered == ()
    assert shop.plan(RewindResult(done.left, done.left, rewind="another", moved=True)).uncovered == (said,)
    alone = shop.rewind(shop.write("c.txt", "3\n"), files=False)
    assert shop.plan(alone).uncovered == ()

    let_time_pass(shop, 40)
    shop.write("d.txt", "4\n")
    shop.history.close()
    for target in (named, done):
        assert shop.plan(target).uncovered == (said,)
    assert [each.reason for each in shop.plan(done).not_kept] == ["dropped"] * 2


# -- git


@pytest.mark.parametrize("tool", ["execute", "delete", "files alone"])
def test_a_repository_that_was_removed_is_named(shop: Workshop, tool: str) -> None:
    inner = shop.root / "inner"
    (inner / ".git").mkdir(parents=True)
    (inner / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "a.txt").write_text("1\n")
    (shop.root / "other" / ".git").mkdir(parents=True)
    agent = shop.agent
    if tool == "files alone":
        agent = shop.make_agent(FilesystemBackend(shop.root, virtual_mode=True))
    if tool == "execute":
        shop.run("true")
        start = shop.run("rm -r inner")
    else:
        start = shop.do(call("delete", file_path="/inner"), agent=agent)
    assert not inner.exists()
    later = shop.write("b.txt", "1\n")

    said = [each for each in shop.plan(start, agent).uncovered if "is gone" in each]
    assert said == [f"the .git of {inner} is gone, and does not come back with the files"]
    assert not [each for each in shop.plan(later, agent).uncovered if "is gone" in each]
    shop.rewind(start, agent)
    assert listed(inner) == ["a.txt"]


def test_a_repository_in_which_only_files_went_is_not_named(shop: Workshop) -> None:
    (shop.root / "inner" / ".git").mkdir(parents=True)
    (shop.root / "inner" / "a.txt").write_text("1\n")
    start = shop.do(
        call("execute", command="rm inner/a.txt"), call("write_file", file_path="/inner/b", content="b")
    )
    assert not [each for each in shop.plan(start).uncovered if "is gone" in each]


def test_submodules_are_covered_and_their_git_is_not_touched(shop: Workshop) -> None:
    def git(*arguments: str) -> None:
        named = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
        subprocess.run(["git", *named, *arguments], cwd=shop.root, check=True, capture_output=True)

    other = shop.root.parent / "other"
    other.mkdir()
    git("init", "-q", str(other))
    (other / "part.txt").write_text("part\n")
    git("-C", str(other), "add", ".")
    git("-C", str(other), "commit", "-qm", "part")
    git("init", "-q")
    git("submodule", "add", "-q", str(other), "sub")
    git("commit", "-qm", "whole")
    before = shop.tree()

    start = shop.run("echo x >> sub/part.txt; echo new > sub/new.txt; rm .gitmodules")
    assert names(shop.plan(start).restored, shop.root) == [".gitmodules", "sub/part.txt"]
    shop.rewind(start)
    assert shop.tree() == before
    start = shop.run("rm -r sub")
    assert [each for each in shop.plan(start).uncovered if f"the .git of {shop.root / 'sub'} is gone" in each]


def test_what_git_ignores_is_covered_where_that_is_wanted(call_mode: CallMode, tmp_path: Path) -> None:
    shop = Workshop(call_mode, tmp_path, ignored=True)
    (shop.root / ".git").mkdir()
    (shop.root / ".gitignore").write_text("build/\n*.log\n")
    (shop.root / "build").mkdir()
    (shop.root / "build" / "old").write_text("old\n")
    before = shop.tree()
    start = shop.run("echo new > build/old; echo x > a.log; rm -r build; mkdir build; echo y > build/made")
    plan = shop.plan(start)
    assert names(plan.restored, shop.root) == ["build/old"]
    assert names(plan.removed, shop.root) == ["a.log", "build/made"]
    assert not any("git ignores" in each for each in plan.uncovered)
    shop.rewind(start)
    assert shop.tree() == before


# -- times that lie


def test_a_change_of_the_same_size_with_its_time_set_back_is_seen(shop: Workshop) -> None:
    path = shop.root / "a.txt"
    path.write_text("one\n")
    old = path.stat().st_mtime_ns
    shop.run("true")
    for text in ("two\n", "six\n"):
        start = shop.run(f"printf '{text}' > a.txt; touch -d @{old // 10**9}.{old % 10**9:09} a.txt")
        assert path.stat().st_mtime_ns == old
        assert names(shop.plan(start).restored, shop.root) == ["a.txt"]
    (before,) = shop.plan(start).restored
    assert before.before_bytes == b"two\n"


def test_writes_within_one_tick_of_the_clock_are_seen(tmp_path: Path) -> None:
    """What was written a moment ago is read again: the times of a ramfs stay the same for milliseconds."""
    with mounted(tmp_path / "project", "-t", "ramfs") as root:
        same = write_twice(tmp_path / "history", root, times=200)
        if not same:
            pytest.skip("the clock of this machine ticks too fast")


def write_twice(directory: Path, root: Path, times: int) -> int:
    """Write, look, and write again at once; return how often no time tells the two writes apart."""
    history, places = FileHistory(directory), Directories((str(root),))
    path, same = root / "a.txt", 0

    def write(number: int) -> tuple[int, ...]:
        # In place and of the same size, so that only times can tell.
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT), "w") as file:
            file.write(f"{number:06}")
        about = path.stat()
        return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino

    for number in range(times):
        step = history.attempt(lambda recorder: recorder.begin("1", places))
        assert step is not None
        first = write(2 * number)
        history.attempt(lambda recorder: recorder.look(str(root)))
        same += write(2 * number + 1) == first
        assert history.attempt(lambda recorder, step=step: recorder.end(step, places))
    history.close()
    with closing(sqlite3.connect(directory / "files.db")) as database:
        rows = database.execute("SELECT count(*) FROM seen WHERE path IS NOT NULL").fetchall()
    assert rows == [(2 * times,)]
    return same


# -- processes


def work_beside(root: Path, directory: Path, pipe: Any) -> None:
    """Do in another process what is said: run a command, or go back to where it began."""
    model = ScriptedModel()
    history = FileHistory(directory)
    agent: Any = create_deep_agent(
        model, backend=LocalShellBackend(root), checkpointer=MemorySaver(), file_history=history
    )
    config: Any = {"configurable": {"thread_id": "beside"}}
    while (said := pipe.recv()) is not None:
        if said == "go back":
            start = [*agent.get_state_history(config)][-1].config
            try:
                done = history.rewind(agent, history.plan(agent, start))
                pipe.send([[each.name for each in paths] for paths in (done.changed, done.kept)])
            except UndoError as error:
                pipe.send(type(error).__name__)
            continue
        model.then(call("execute", command=said), "Done.")
        agent.invoke({"messages": "Go on"}, config)
        pipe.send("done")


@contextmanager
def beside(shop: Workshop) -> Generator[Any]:
    ours, theirs = FORKING.Pipe()
    process = FORKING.Process(target=work_beside, args=(shop.root, shop.history.directory, theirs))
    process.start()
    try:
        yield ours
        ours.send(None)
        process.join(30)
    finally:
        process.kill()
        process.join()


def test_two_processes_in_one_directory_take_back_their_own(shop: Workshop) -> None:
    (shop.root / "both.txt").write_text("0\n")
    with beside(shop) as other:
        start = shop.run("echo 1 > mine.txt")
        other.send("echo 2 > theirs.txt; echo 2 > both.txt")
        assert other.recv() == "done"
        shop.run("echo 3 > later.txt; echo 3 > both.txt")
        plan = shop.plan(start)
        assert names(plan.removed, shop.root) == ["later.txt", "mine.txt"]
        assert names(plan.restored, shop.root) == ["both.txt"]
        other.send("go back")
        assert other.recv() == [["theirs.txt"], ["both.txt"]]
        shop.rewind(start)
    assert listed(shop.root) == ["both.txt"]
    assert (shop.root / "both.txt").read_text() == "2\n"


def test_a_step_of_another_process_is_waited_for(shop: Workshop) -> None:
    start = shop.run("echo 1 > mine.txt")
    with beside(shop) as other:
        other.send("touch begun; while [ ! -e go-on ]; do sleep 0.02; done")
        while not (shop.root / "begun").exists():
            assert not other.poll(0.02)
        with pytest.raises(UndoBusy, match="under way"):
            shop.rewind(start)
        (shop.root / "go-on").touch()
        assert other.recv() == "done"
        shop.rewind(start)
    assert listed(shop.root) == ["begun", "go-on"]


def open_and_wait(directory: Path, root: Path, pipe: Any) -> None:
    """Begin a step, leave a child that knows nothing of it, and wait for the end."""
    history, places = FileHistory(directory), Directories((str(root),))
    assert history.attempt(lambda recorder: recorder.begin("dead", places))
    if os.fork() == 0:
        # By now it has let go of what is its parent's.
        pipe.send(os.getpid())
    signal.pause()


def test_a_child_does_not_keep_its_dead_parent_alive(shop: Workshop) -> None:
    start = shop.run("echo 1 > mine.txt")
    ours, theirs = FORKING.Pipe()
    parent = FORKING.Process(target=open_and_wait, args=(shop.history.directory, shop.root, theirs))
    parent.start()
    child = ours.recv()
    try:
        with pytest.raises(UndoBusy):
            shop.rewind(start)
        parent.kill()
        parent.join()
        os.kill(child, 0)
        shop.rewind(start)
        assert listed(shop.root) == []
        shop.history.close()
        shop.plan(start)
        assert len(listed(shop.history.directory / "processes")) == 1
    finally:
        os.kill(child, signal.SIGKILL)


def test_all_who_ask_at_once_find_a_process_dead(tmp_path: Path) -> None:
    processes, all_ask = Processes(tmp_path), Barrier(8)
    (tmp_path / "processes").mkdir()

    def ask(name: str) -> bool:
        all_ask.wait(60)
        return processes.is_alive(name)

    with ThreadPoolExecutor(8) as pool:
        for number in range(100):
            (tmp_path / "processes" / f"{number}.lock").touch()
            assert not any(pool.map(ask, [str(number)] * 8))
    processes.drop_dead([])
    assert listed(tmp_path / "processes") == []


def use_in_child(directory: Path, root: Path) -> None:
    """Use a history, and again in a forked child while the parent is in the middle of writing."""
    history, places = FileHistory(directory), Directories((str(root),))
    step = history.attempt(lambda recorder: recorder.begin("parent", places))
    assert step is not None
    (root / "a.txt").write_text("1\n")
    child = os.fork()
    if child == 0:
        mine = history.attempt(lambda recorder: recorder.begin("child", places))
        done = mine and history.attempt(lambda recorder: recorder.end(mine, places))
        os._exit(0 if done else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert history.attempt(lambda recorder: recorder.end(step, places))


def test_a_forked_child_goes_on_with_the_history_beside_its_parent(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    child = FORKING.Process(target=use_in_child, args=(tmp_path / "history", tmp_path / "project"))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    with closing(sqlite3.connect(tmp_path / "history" / "files.db")) as database:
        rows = database.execute("SELECT DISTINCT thread FROM steps WHERE ended IS NOT NULL").fetchall()
    assert sorted(rows) == [("child",), ("parent",)]


def die_at_work(directory: Path, root: Path) -> None:
    history, places = FileHistory(directory), Directories((str(root),))
    history.attempt(lambda recorder: recorder.begin("dead", places))
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_dead_processes_leave_goes(shop: Workshop, tmp_path: Path) -> None:
    shop.write("a.txt", "1\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for _ in range(2):
        dead = FORKING.Process(target=die_at_work, args=(shop.history.directory, elsewhere))
        dead.start()
        dead.join()
    shop.history.close()
    shop.write("b.txt", "2\n")
    # The second one has ended what the first was at, and when it died itself is asked by who looks there.
    assert len(listed(shop.history.directory / "processes")) == 2

    def count_open() -> int:
        with opened(shop) as database:
            return database.execute("SELECT count(*) FROM steps WHERE ended IS NULL").fetchone()[0]

    assert count_open() >= 1
    let_time_pass(shop, 40)
    shop.history.close()
    shop.write("c.txt", "3\n")
    assert count_open() == 0
    assert len(listed(shop.history.directory / "processes")) == 1


def test_a_command_that_died_in_a_tree_too_large_owns_nothing_later(
    call_mode: CallMode, tmp_path: Path
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=20)
    for number in range(30):
        (shop.root / f"{number}.txt").write_text("x")
    start = shop.write("0.txt", "agent\n")
    with opened(shop) as database:
        values = ["dead", "all", "0" * 32, json.dumps([str(shop.root)]), "[]"]
        query = "INSERT INTO steps(thread, kind, process, places, notes) VALUES (?, ?, ?, ?, ?)"
        database.execute(query, values)
    (shop.root / "0.txt").write_text("by hand\n")
    plan = shop.plan(start)
    assert [each.reason for each in plan.conflicts] == ["changed by others since"]
    with opened(shop) as database:
        assert database.execute(
            "SELECT count(*) FROM seen WHERE thread = 'dead' AND path IS NOT NULL"
        ).fetchone() == (0,)


# -- disks


def work_on_a_full_disk(path: Path) -> None:
    """Let an agent go on though the file of its history may not grow, and end with 0 if it does."""
    root = path / "project"
    model, history = ScriptedModel(), FileHistory(path / "history")
    agent: Any = create_deep_agent(
        model, backend=LocalShellBackend(root), checkpointer=MemorySaver(), file_history=history
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    model.then(call("write_file", file_path="/a.txt", content="1\n"), "Done.")
    agent.invoke({"messages": "Go on"}, config)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    for number in range(6):
        model.then(call("execute", command=f"head -c 100000 /dev/urandom > {number}"), "Done.")
        agent.invoke({"messages": "Go on"}, config)
        assert (root / str(number)).stat().st_size == 100_000
    covered = history.coverage(agent)
    assert (covered.files, covered.commands) == (False, False), covered
    assert covered.why
    with pytest.raises(UndoError, match=re.escape(covered.why)):
        history.plan(agent, config)


def test_a_file_that_may_not_grow_turns_undo_off_and_fails_no_step(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    child = FORKING.Process(target=work_on_a_full_disk, args=(tmp_path,))
    child.start()
    child.join(120)
    assert child.exitcode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=2m") as place:
        yield place


def test_a_full_disk_turns_undo_off_and_fails_no_step(
    call_mode: CallMode, tmp_path: Path, small_disk: Path
) -> None:
    shop = Workshop(call_mode, tmp_path, history=FileHistory(small_disk / "history"))
    for number in range(20):
        shop.run(f"head -c 150000 /dev/urandom > {number}")
    assert len(listed(shop.root)) == 20
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.commands) == (False, False)
    assert "full" in covered.why
    shop.history.close()


def test_a_full_disk_leaves_all_as_it_was(call_mode: CallMode, tmp_path: Path, small_disk: Path) -> None:
    """Contents are staged beside the files, where the room ends before anything has happened."""
    (small_disk / "project").mkdir()
    (tmp_path / "project").symlink_to(small_disk / "project")
    shop = Workshop(call_mode, tmp_path)
    (shop.root / "large.txt").write_text(os.urandom(500_000).hex())
    (shop.root / "small.txt").write_text("1\n")
    start = shop.run("echo 2 > small.txt; rm large.txt")
    (small_disk / "others").write_bytes(b"x" * 1_300_000)
    said, before = shop.messages(), shop.tree()
    with pytest.raises(UndoError, match="cannot be put back"):
        shop.rewind(start)
    assert (shop.messages(), shop.tree()) == (said, before)
    (small_disk / "others").unlink()
    shop.rewind(start)
    assert listed(shop.root) == ["large.txt", "small.txt"]


# -- cost


class Counting(MemorySaver):
    """Counts what is read."""

    reads = 0

    def get_tuple(self, config: Any) -> Any:
        self.reads += 1
        return super().get_tuple(config)


def test_a_long_thread_is_not_read_to_its_beginning(call_mode: CallMode, tmp_path: Path) -> None:
    saver = Counting()
    shop = Workshop(call_mode, tmp_path, saver=saver)
    start = shop.write("a.txt", "1\n")
    for _ in range(3):
        shop.do(*[call("ls", path="/")] * 25)
    late = shop.write("b.txt", "2\n")
    own: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    many = [*saver.list(own)]
    assert len(many) > 130
    shop.rewind(late)
    for target in (start, many[len(many) // 2].config, late, shop.head):
        saver.reads = 0
        shop.plan(target)
        assert saver.reads <= 5


class Counted(sqlite3.Connection):
    """Counts the steps that SQLite takes for queries, in fifties."""

    steps = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.set_progress_handler(self._count, 50)

    @staticmethod
    def _count() -> None:
        Counted.steps += 1


def measure(shop: Workshop) -> list[int]:
    """Count what a turn, a plan, going back, and a plan to go forth need of SQLite."""
    counts = [Counted.steps]
    start = shop.run("echo 1 >> a.txt")
    counts.append(Counted.steps)
    shop.plan(start)
    counts.append(Counted.steps)
    done = shop.rewind(start)
    counts.append(Counted.steps)
    shop.plan(done)
    counts.append(Counted.steps)
    return [after - before for before, after in pairwise(counts)]


def test_what_was_done_before_makes_no_turn_and_no_going_back_slower(
    call_mode: CallMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Counted))
    shop = Workshop(call_mode, tmp_path)
    shop.run("echo 1 > a.txt")
    first = measure(shop)
    threads = ["12"[number % 2] for number in range(2_000)]
    with opened(shop) as database, database:
        database.execute("BEGIN")
        columns, values = "thread, kind, process, places, notes, ended", "?, 'all', '', '[]', '[]', 1"
        database.executemany(f"INSERT INTO steps({columns}) VALUES ({values})", zip(threads))
        columns, values = "thread, step, path, before, after, shared, at", "?, 1, 'a', NULL, NULL, 0, 9e9"
        database.executemany(f"INSERT INTO seen({columns}) VALUES ({values})", zip(threads))
    # Now its state knows these, too.
    shop.run("true")
    assert max(after - before for before, after in zip(first, measure(shop), strict=True)) < 20
