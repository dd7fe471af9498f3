"""What another process goes on with after a kill has the same bounds, and goes back the same."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from deepagents.backends._bytes import is_temporary
from deepagents.testing import Asked, call
from deepagents.undo.recorder import Recorder
from deepagents.undo.steps import Directories
from tests.conftest import CallMode
from tests.programs import FORKING
from tests.undo.workshop import Workshop, die_noticed, listed, names

HIDE = "echo '*' > .gitignore"


@contextmanager
def opened(path: Path, **options: Any) -> Generator[Workshop]:
    """Open the same directory, threads and history as another process has."""
    with asyncio.Runner() as runner, SqliteSaver.from_conn_string(str(path / "threads.db")) as saver:
        yield Workshop(CallMode("sync", runner), path, saver=saver, **options)


def make_worker(shop: Workshop, command: str) -> Any:
    """Make an agent with a tool that runs a command; a process that runs any dies of it."""

    def work() -> str:
        """Work."""
        if command:
            subprocess.run(command, shell=True, cwd=shop.root, check=True)
            die_noticed(shop.history.directory)
        return "ok"

    return shop.make_agent(tools=[work])


def in_a_process(target: Callable[..., None], *arguments: Any) -> int | None:
    """Run this in a process of its own: the clock of this one may be far ahead, by an earlier test."""
    child = FORKING.Process(target=target, args=arguments)
    child.start()
    child.join()
    return child.exitcode


def work(path: Path) -> None:
    with opened(path) as shop:
        shop.run("echo 1 > earlier.txt")


def die(asked: Asked | None = None) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "dead"


def work_and_die(path: Path, when: str) -> None:
    with opened(path) as shop:
        within = {"step that hides": f"{HIDE}; echo 1 > inner.txt", "step behind it": "echo 1 > inner.txt"}
        agent = make_worker(shop, within.get(when, ""))
        hide = call("execute", command=f"{HIDE}; echo 1 > inner.txt" if when == "answer" else HIDE)
        replies = {"step that hides": [call("work")], "step behind it": [hide, call("work")]}
        shop.model.then(*replies.get(when, [hide, die]))
        agent.invoke({"messages": "Go on"}, shop.thread, durability="sync")


def cut_off_a_turn(path: Path, when: str) -> Any:
    """Let a turn end and the next one be killed; return the checkpoint between them."""
    assert in_a_process(work, path) == 0
    with opened(path) as shop:
        start = shop.head
    assert in_a_process(work_and_die, path, when) == -signal.SIGKILL
    return start


@pytest.mark.parametrize("next_thread", ["same", "another first"])
@pytest.mark.parametrize("when", ["step that hides", "step behind it", "answer"])
def test_rules_of_a_turn_that_was_cut_off_hide_nothing_of_it(
    tmp_path: Path, when: str, next_thread: str
) -> None:
    start = cut_off_a_turn(tmp_path, when)
    with opened(tmp_path) as shop:
        agent = make_worker(shop, "")
        if next_thread == "another first":
            shop.run("true", thread={"configurable": {"thread_id": "2"}})
        if when == "answer" or next_thread == "another first":
            # A person's, which those rules hide as well: what died had ended.
            (shop.root / "person.txt").write_text("mine\n")
        shop.model.then(call("execute", command="echo 1 > later.txt"), "Done.")
        agent.invoke(None, shop.thread)

        plan = shop.plan(start, agent)
        assert names(plan.removed, shop.root) == [".gitignore", "inner.txt", "later.txt"]
        assert plan.conflicts == plan.not_kept == ()
        # From the next turn on these rules count.
        later = shop.run("echo 1 > hidden.txt")
        assert shop.plan(later).removed == ()


@pytest.mark.parametrize("next_turn", [False, True])
@pytest.mark.parametrize("when", ["step that hides", "step behind it", "answer"])
def test_what_a_turn_hid_that_was_cut_off_goes_back_though_it_does_not_go_on(
    tmp_path: Path, when: str, *, next_turn: bool
) -> None:
    start = cut_off_a_turn(tmp_path, when)
    with opened(tmp_path) as shop:
        if next_turn:
            shop.run("echo 1 > hidden.txt")
        assert names(shop.plan(start).removed, shop.root) == [".gitignore", "inner.txt"]


@pytest.mark.parametrize("does", ["waits", "works"])
def test_rules_of_a_turn_stay_though_many_other_threads_work(tmp_path: Path, does: str) -> None:
    with opened(tmp_path) as shop:
        places = Directories((str(shop.root),))

        def beside() -> str:
            """Let many others work."""
            for number in range(300):
                step = shop.history.attempt(partial(Recorder.begin, thread=f"other {number}", places=places))
                assert step
                shop.history.attempt(partial(Recorder.end, step=step, places=places))
            return "ok"

        agent = shop.make_agent(tools=[beside], interrupt_on={"execute": does == "waits"})
        (shop.root / "mine.txt").write_text("mine\n")
        hide = call("write_file", file_path="/.gitignore", content="*\n")
        shop.model.then(hide, call("beside"), call("execute", command="echo 1 > hidden.txt"), "Done.")
        shop.mode.invoke(agent, {"messages": "Go on"}, shop.thread)
        if does == "waits":
            beside()
            let_time_pass(shop, days=20)
            approve = Command(resume={"decisions": [{"type": "approve"}]})
            shop.mode.invoke(agent, approve, shop.thread)
        start = [*agent.get_state_history(shop.thread)][-1].config
        assert names(shop.plan(start, agent).removed, shop.root) == [".gitignore", "hidden.txt"]


def let_time_pass(shop: Workshop, days: float) -> None:
    """Let all records be so much older, and looked for."""
    shop.history.close()
    with closing(sqlite3.connect(shop.history.directory / "files.db", isolation_level=None)) as database:
        database.execute("UPDATE seen SET at = at - ?", [days * 86_400])


def count_rules(shop: Workshop) -> int:
    with closing(sqlite3.connect(shop.history.directory / "files.db")) as database:
        return database.execute("SELECT count(*) FROM rules_of_turns").fetchone()[0]


def test_rules_of_turns_go_with_their_age_and_their_thread(tmp_path: Path) -> None:
    with opened(tmp_path) as shop:
        for name in "123":
            shop.run(f"echo 1 > {name}.txt", thread={"configurable": {"thread_id": name}})
        shop.history.forget("3")
        assert count_rules(shop) == 2
        let_time_pass(shop, days=40)
        shop.run("true", thread={"configurable": {"thread_id": "2"}})
        assert count_rules(shop) == 1


def test_a_history_that_was_made_without_rules_of_turns_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as shop:
        start = shop.write("a.txt", "1\n")
        shop.history.close()
        with closing(sqlite3.connect(shop.history.directory / "files.db")) as database:
            database.executescript("DROP TABLE rules; DROP TABLE rules_of_turns")
        shop.run(f"{HIDE}; echo 1 > b.txt")
        assert names(shop.plan(start).removed, shop.root) == [".gitignore", "a.txt", "b.txt"]


def die_with_too_much(path: Path) -> None:
    with opened(path, max_files=20) as shop:
        shop.run("echo 1 > mine.txt; mkdir packages; touch $(seq -f packages/%g 30)")
        shop.run("true")
        (shop.root / "mine.txt").write_text("mine\n")
        (shop.root / "new.txt").write_text("mine\n")
        shop.do(call("work"), agent=make_worker(shop, "rm -r packages"))


def test_what_changed_before_a_step_with_too_much_to_look_at_died_is_nobody_s_work(tmp_path: Path) -> None:
    with opened(tmp_path, max_files=20) as shop:
        start = shop.run("echo 0 > mine.txt")
    assert in_a_process(die_with_too_much, tmp_path) == -signal.SIGKILL
    with opened(tmp_path, max_files=20) as shop:
        later = shop.run("echo 1 > later.txt")
        assert names(shop.plan(later).removed, shop.root) == ["later.txt"]
        plan = shop.plan(start)
        assert names(plan.removed, shop.root) == ["later.txt"]
        assert names(plan.conflicts, shop.root) == ["mine.txt"]


def die_at(path: Path, start: Any, moment: str, options: dict[str, Any]) -> None:
    with opened(path) as shop:
        plan = shop.plan(start)
        setattr(os, moment, lambda *args, **named: die())
        shop.history.rewind(shop.agent, plan, **options)


def die_behind_all(path: Path, start: Any) -> None:
    remove = os.rmdir

    def remove_or_die(name: str, **named: Any) -> None:
        if is_temporary(name):
            die()
        remove(name, **named)

    with opened(path) as shop:
        plan = shop.plan(start)
        os.rmdir = remove_or_die
        shop.history.rewind(shop.agent, plan)


def test_what_went_away_before_a_kill_is_not_said_to_have_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as shop:
        for name in ("a", "b"):
            (shop.root / name).write_text("1\n")
        (shop.root / "link").symlink_to("a")
        start = shop.run("for i in a link; do rm $i; mkdir $i; echo 2 > $i/made; done; echo 2 > b")
        assert in_a_process(die_behind_all, tmp_path, start) == -signal.SIGKILL
        shop.history.recover(shop.agent, shop.thread)
        assert listed(shop.root) == ["a", "b", "link"]
        assert caplog.messages == []


@pytest.mark.parametrize("options", [{}, {"conversation": False}], ids=["both", "files"])
@pytest.mark.parametrize(("moment", "left"), [("fsync", "2\n"), ("rename", "1\n")], ids=["before", "behind"])
@pytest.mark.parametrize("by", ["recover", "plan"])
def test_a_kill_before_what_decides_leaves_all_and_one_behind_it_is_finished(
    tmp_path: Path, moment: str, left: str, options: dict[str, Any], by: str
) -> None:
    with opened(tmp_path) as shop:
        (shop.root / "a.txt").write_text("1\n")
        start = shop.write("a.txt", "2\n")
        said = shop.messages()
        child = FORKING.Process(target=die_at, args=(tmp_path, start, moment, options))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        assert (shop.root / "a.txt").read_text() == "2\n"
        assert len(listed(shop.root)) == 2
        getattr(shop.history, by)(shop.agent, shop.thread)
        assert listed(shop.root) == ["a.txt"]
        assert (shop.root / "a.txt").read_text() == left
        assert shop.messages() == ([] if left == "1\n" and not options else said)
