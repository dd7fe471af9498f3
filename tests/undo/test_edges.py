"""What undo does at its bounds, and with paths that cannot be reached."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import sqlite3
import stat
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from contextvars import Context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from langchain_core.tools import tool

from deepagents.backends import FilesystemBackend
from deepagents.testing import call
from deepagents.undo import FileHistory, UndoError
from deepagents.undo.index import is_unchanged
from deepagents.undo.plans import IN_THE_WAY, Item, settle
from deepagents.undo.restore import Restorer
from deepagents.undo.states import reaching, read_path
from deepagents.undo.steps import Directories
from deepagents.undo.store import Store
from tests.conftest import CallMode
from tests.undo.workshop import Workshop, listed, names


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path) -> Workshop:
    return Workshop(call_mode, tmp_path)


def test_a_store_at_its_bound_goes_on_and_keeps_the_newest(call_mode: CallMode, tmp_path: Path) -> None:
    most = 820_000
    shop = Workshop(call_mode, tmp_path, max_bytes=most)
    starts = [shop.run("head -c 100000 /dev/urandom > a") for _ in range(3 * most // 100_000)]
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.why) == (True, None)
    assert most // 2 < shop.history.size() <= most
    plan = shop.plan(starts[-(most // 200_000)])
    assert names(plan.restored, shop.root) == ["a"]


def test_what_is_read_again_and_kept_already_needs_no_room(call_mode: CallMode, tmp_path: Path) -> None:
    told: list[str | None] = []
    shop = Workshop(call_mode, tmp_path, max_bytes=3_000_000, report=told.append)
    first = shop.run("echo 1 > first.txt")
    for number in range(8):
        shop.run(f"head -c 120000 /dev/urandom > {number}.bin")
    last = shop.run("echo 2 > last.txt")
    assert told == []
    assert len(shop.plan(first).removed) == 10
    assert names(shop.plan(last).removed, shop.root) == ["last.txt"]


def test_a_directory_above_the_bounds_is_named_when_it_is_deleted(
    call_mode: CallMode, tmp_path: Path
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=20)
    (shop.root / "many").mkdir()
    for number in range(30):
        (shop.root / "many" / f"{number}.txt").write_text("x")
    start = shop.do(call("delete", file_path="/many"))
    assert not (shop.root / "many").exists()
    plan = shop.plan(start)
    assert [(each.path.name, each.reason) for each in plan.not_kept] == [("many", "before_undo")]
    assert plan.restored == ()


@pytest.mark.parametrize(
    "name",
    ["x" * 300, f"{'x' * 300}/y", "a.txt/below/y", f"{'x' * 200}/" * 30],
    ids=["name", "directory", "file", "path"],
)
def test_a_name_that_cannot_be_reached_leaves_undo_on(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text("1\n")
    history, places = FileHistory(tmp_path.parent / f"{tmp_path.name}-history"), Directories((str(tmp_path),))
    path = str(tmp_path / name)
    step = history.attempt(lambda recorder: recorder.begin_files("1", [path], places))
    assert step is not None
    assert history.attempt(lambda recorder: recorder.end_files(step)) is not None
    assert history.attempt(lambda recorder: recorder.look_at([path])) == {path: None}
    assert history.attempt(lambda recorder: recorder.last_of("1")) == 0


@pytest.fixture
def lent(call_mode: CallMode, tmp_path: Path) -> Generator[Workshop]:
    """A workshop of a user who may not do everything, as root may."""
    if os.geteuid() != 0:
        yield Workshop(call_mode, tmp_path)
        return
    # What is imported late is not theirs to read.
    warm = Workshop(call_mode, tmp_path)
    warm.rewind(warm.do(call("write_file", file_path="/a.txt", content="1\n")))
    with TemporaryDirectory() as place:
        shop = Workshop(call_mode, Path(place))
        for each in (shop.root.parent, shop.root):
            os.chown(each, 65534, 65534)
        os.seteuid(65534)
        try:
            yield shop
        finally:
            os.seteuid(0)


def test_a_directory_that_may_not_be_entered_leaves_undo_on(lent: Workshop) -> None:
    root, history = lent.root, lent.history
    (root / "shut").mkdir(mode=0o600)
    places = Directories((str(root),))
    path = str(root / "shut" / "a.txt")
    step = history.attempt(lambda recorder: recorder.begin_files("1", [path], places))
    assert step is not None
    assert history.attempt(lambda recorder: recorder.end_files(step)) is not None
    assert history.attempt(lambda recorder: recorder.last_of("1")) == 0


def make_opener(shop: Workshop, shut: Path) -> Any:
    """Make an agent with a tool that opens a directory, and makes a file."""

    def work() -> str:
        """Work."""
        shut.chmod(0o700)
        (shop.root / "new.txt").write_text("1\n")
        return "ok"

    return shop.make_agent(tools=[work])


@pytest.mark.parametrize("next_process", [False, True])
def test_what_lies_in_a_directory_that_was_shut_is_nobody_s_work(
    lent: Workshop, *, next_process: bool
) -> None:
    shut = lent.root / "shut"
    (shut / "deep").mkdir(parents=True)
    for each in (shut / "mine.txt", shut / "deep" / "mine.txt"):
        each.write_text("mine\n")
    shut.chmod(0)
    agent = make_opener(lent, shut)
    start = lent.do(call("write_file", file_path="/first.txt", content="1\n"), agent=agent)
    assert lent.mode.call(lent.history, "coverage", agent).commands
    if next_process:
        lent.history.close()
        lent.history = FileHistory(lent.history.directory)
        agent = make_opener(lent, shut)
    opened = lent.do(call("work"), agent=agent)

    plan = lent.plan(start, agent)
    assert names(plan.removed, lent.root) == ["first.txt", "new.txt"]
    assert names(plan.restored, lent.root) == ["shut"]
    assert {each.reason for each in plan.not_kept} == {"before_undo"}
    assert names(plan.not_kept, lent.root) == ["shut/deep", "shut/deep/mine.txt", "shut/mine.txt"]
    made = lent.do(call("write_file", file_path="/shut/made.txt", content="1\n"), call("work"), agent=agent)
    assert names(lent.plan(made, agent).removed, lent.root) == ["shut/made.txt"]
    lent.rewind(opened, agent)
    assert stat.S_IMODE(shut.stat().st_mode) == 0
    assert listed(lent.root) == ["first.txt", "shut"]


def test_a_directory_that_stays_shut_is_named(lent: Workshop) -> None:
    (lent.root / "shut").mkdir(mode=0)
    (lent.root / "open").mkdir()
    agent = make_opener(lent, lent.root / "open")
    start = lent.do(call("work"), agent=agent)
    plan = lent.plan(start, agent)
    assert names(plan.removed, lent.root) == ["new.txt"]
    assert f"what cannot be looked at stays as it is, such as {lent.root / 'shut'}" in plan.uncovered


def test_a_root_that_is_shut_is_named_and_looked_at_once_it_is_open(lent: Workshop) -> None:
    (lent.root / "mine.txt").write_text("mine\n")
    lent.root.chmod(0)
    agent, sentence = make_opener(lent, lent.root), f"{lent.root} cannot be looked at: Permission denied"
    covered = lent.mode.call(lent.history, "coverage", agent)
    assert (covered.files, covered.commands, covered.why) == (True, False, sentence)
    start = lent.do(call("work"), agent=agent)

    plan = lent.plan(start, agent)
    assert plan.restored == plan.removed == ()
    assert any(each.endswith(f"not covered: {sentence}") for each in plan.uncovered)
    (lent.root / "new.txt").unlink()
    later = lent.do(call("work"), agent=agent)
    plan = lent.plan(later, agent)
    assert names(plan.removed, lent.root) == ["new.txt"]
    assert lent.mode.call(lent.history, "coverage", agent).commands


def test_what_vanishes_while_it_is_looked_at_keeps_nothing_else_from_that(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop.root / "gone").mkdir()
    (shop.root / "kept.txt").write_text("mine\n")
    scan = os.scandir

    def vanish(entry: os.DirEntry[str]) -> os.DirEntry[str]:
        if entry.name == "gone" and (shop.root / "gone").exists():
            (shop.root / "gone").rmdir()
        return entry

    @contextmanager
    def scan_late(*args: Any) -> Generator[Any]:
        with scan(*args) as entries:
            yield map(vanish, entries)

    with monkeypatch.context() as late:
        late.setattr(os, "scandir", scan_late)
        assert shop.mode.call(shop.history, "coverage", shop.agent).commands
    assert not (shop.root / "gone").exists()
    start = shop.run("echo 1 > kept.txt; mkdir gone")
    assert names(shop.plan(start).restored, shop.root) == ["kept.txt"]
    assert names(shop.plan(start).removed, shop.root) == ["gone"]


def test_a_user_without_home_is_covered(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def know_nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", know_nobody)
    assert shop.mode.call(shop.history, "coverage", shop.agent).commands


def test_a_root_that_was_removed_comes_back_where_that_is_taken(shop: Workshop) -> None:
    (shop.root / "d").mkdir()
    (shop.root / "d" / "a.txt").write_text("a\n")
    before = shop.tree()
    start = shop.run(f"cd /; rm -r {shop.root}")
    assert names(shop.plan(start).conflicts, shop.root) == ["d", "d/a.txt"]
    done = shop.rewind(start, conflicts="take")
    assert (done.kept, done.failed) == ((), ())
    assert shop.tree() == before


def test_a_directory_that_a_kill_left_without_its_mode_gets_it(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir(mode=0o700)
    item = Item(str(made), b"d0750", None, "restored")
    assert Restorer(Store(tmp_path / "history", 1_000_000, 1), [item], [], 1000).apply() == []
    assert stat.S_IMODE(made.stat().st_mode) == 0o750


def test_a_kill_beside_a_link_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*names: object, **options: object) -> None:
        raise KeyboardInterrupt

    item = Item(str(tmp_path / "link"), b"l0000target", None, "restored")
    store, folder = Store(tmp_path / "history", 1_000_000, 1), tmp_path / ".deepagents-staged"
    restorer = Restorer(store, [item], [str(folder)], 1000)
    restorer.stage()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            restorer.apply()
    assert Restorer(store, [item], [str(folder)], 1000).apply() == []
    assert (listed(tmp_path), (tmp_path / "link").readlink()) == (["link"], Path("target"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any directory")
def test_a_root_that_may_not_be_written_to_goes_back(shop: Workshop) -> None:
    (shop.root / "d").mkdir()
    (shop.root / "d" / "a.txt").write_text("1\n")
    start = shop.write("d/a.txt", "2\n")
    shop.root.chmod(0o500)
    try:
        done = shop.rewind(start)
    finally:
        shop.root.chmod(0o700)
    assert [each.name for each in done.changed] == ["a.txt"]
    assert (shop.root / "d" / "a.txt").read_text() == "1\n"


def test_a_link_in_place_of_a_directory_is_not_looked_through(tmp_path: Path) -> None:
    folder = tmp_path / "d" / "s"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("0\n")
    path = str(folder / "a.txt")
    with reaching() as reach:
        found = read_path(reach, path, 1000)
        assert is_unchanged(reach, path, found)
    (tmp_path / "d").rename(tmp_path / "e")
    (tmp_path / "d").symlink_to("e")
    with reaching() as reach:
        assert not is_unchanged(reach, path, found)
    (item,) = settle([Item(path, b"f0644", None, "restored")], lambda path: (), lambda item: True)
    assert (item.verdict, item.reason) == ("conflict", IN_THE_WAY)


def test_a_history_within_the_directory_is_passed_over(call_mode: CallMode, tmp_path: Path) -> None:
    shop = Workshop(call_mode, tmp_path, history=FileHistory(tmp_path / "project" / "history"))
    start = shop.run("echo 1 > a.txt")
    shop.run("rm a.txt; echo 2 > b.txt")
    plan = shop.plan(start)
    assert names(plan.removed, shop.root) == ["b.txt"]
    assert plan.restored == plan.conflicts == plan.not_kept == ()


def test_a_tree_that_grows_above_its_bound_is_looked_at_no_more(call_mode: CallMode, tmp_path: Path) -> None:
    shop = Workshop(call_mode, tmp_path, max_tree_bytes=10_000)
    for number in range(4):
        shop.run(f"head -c 3000 /dev/zero > {number}")
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.commands) == (True, False)
    assert "10,000 bytes" in covered.why


def let_a_minute_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock be ahead, and go on: timers of others wait for it."""
    monotonic = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 60)


@pytest.mark.parametrize("how", ["remove", "ignore", "none"])
def test_a_tree_that_is_small_again_is_covered_at_a_later_turn(
    call_mode: CallMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=20)
    (shop.root / ".git").mkdir()
    shop.run("mkdir packages; touch $(seq -f packages/%g 30)")
    shop.run("echo 1 > missed.txt")
    assert not shop.mode.call(shop.history, "coverage", shop.agent).commands
    if how == "remove":
        shutil.rmtree(shop.root / "packages")
    elif how == "ignore":
        (shop.root / ".gitignore").write_text("packages\n")
    let_a_minute_pass(monkeypatch)
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    if how == "none":
        assert "more than 20 files" in covered.why
        return
    assert (covered.commands, covered.why) == (True, None)
    start = shop.run("echo 2 > missed.txt; echo 1 > new.txt")
    plan = shop.plan(start)
    assert (names(plan.restored, shop.root), names(plan.removed, shop.root)) == (["missed.txt"], ["new.txt"])
    assert not any("not covered:" in each for each in plan.uncovered)
    shop.rewind(start)
    assert (shop.root / "missed.txt").read_text() == "1\n"


def fill(shop: Workshop) -> None:
    """Let there be too much for a look."""
    (shop.root / "packages").mkdir()
    for number in range(30):
        (shop.root / "packages" / str(number)).touch()


def test_what_changed_while_there_was_too_much_to_look_at_is_nobody_s_work(
    call_mode: CallMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=20)
    start = shop.run("echo 1 > mine.txt; echo 1 > both.txt; echo 1 > gone.txt")
    fill(shop)
    shop.run("true")
    assert not shop.mode.call(shop.history, "coverage", shop.agent).commands

    @tool
    def work() -> str:
        """Work while a person does, and while it turns out that there is not too much any more."""
        (shop.root / "mine.txt").write_text("mine\n")
        (shop.root / "new.txt").write_text("mine\n")
        (shop.root / "gone.txt").unlink()
        shutil.rmtree(shop.root / "packages")
        let_a_minute_pass(monkeypatch)
        assert shop.history.coverage(shop.agent).commands
        (shop.root / "both.txt").write_text("agent's\n")
        return "ok"

    agent = shop.make_agent(tools=[work])
    later = shop.do(call("work"), agent=agent)
    plan = shop.plan(later, agent)
    assert names(plan.restored, shop.root) == ["both.txt"]
    assert plan.removed == plan.conflicts == plan.not_kept == ()
    assert sum("not covered:" in each for each in plan.uncovered) == 1
    assert names(shop.plan(start, agent).conflicts, shop.root) == ["mine.txt"]


@pytest.mark.parametrize("finds", ["look", "tool"])
def test_what_another_process_finds_behind_a_step_that_began_with_too_much_is_nobody_s_work(
    call_mode: CallMode, tmp_path: Path, finds: str
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=20)
    other = Workshop(CallMode("sync", asyncio.Runner()), tmp_path, saver=shop.saver, max_files=20)
    shop.run("echo 1 > mine.txt; echo 1 > both.txt")
    fill(shop)
    shop.run("true")
    (shop.root / "mine.txt").write_text("mine\n")
    (shop.root / "new.txt").write_text("mine\n")

    @tool
    def work() -> str:
        """Work until another process finds that there is not too much any more."""
        shutil.rmtree(shop.root / "packages")
        if finds == "tool":
            edit = call("edit_file", file_path="/mine.txt", old_string="mine", new_string="another's")
            agent = other.make_agent(FilesystemBackend(other.root, virtual_mode=True))
            Context().run(other.do, edit, thread={"configurable": {"thread_id": "2"}}, agent=agent)
        assert other.history.coverage(other.agent).commands
        (shop.root / "both.txt").write_text("agent's\n")
        # It looks again, as a command is under way.
        other.plan(shop.thread)
        return "ok"

    agent = shop.make_agent(tools=[work])
    start = shop.do(call("work"), agent=agent)
    plan = shop.plan(start, agent)
    assert names(plan.restored, shop.root) == ["both.txt"]
    assert plan.removed == plan.conflicts == plan.not_kept == ()
    assert sum("not covered:" in each for each in plan.uncovered) == 1


def test_what_is_too_much_for_others_meanwhile_costs_a_step_nothing(
    call_mode: CallMode, tmp_path: Path
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=20)
    other = Workshop(call_mode, tmp_path, max_files=20)
    (shop.root / "a.txt").write_text("1\n")

    @tool
    def work() -> str:
        """Work in a large directory that goes away again."""
        (shop.root / "a.txt").write_text("2\n")
        fill(shop)
        assert not other.history.coverage(other.agent).commands
        shutil.rmtree(shop.root / "packages")
        return "ok"

    agent = shop.make_agent(tools=[work])
    start = shop.do(call("work"), agent=agent)
    assert names(shop.plan(start, agent).restored, shop.root) == ["a.txt"]


def test_a_large_file_with_an_old_time_is_another_one(call_mode: CallMode, tmp_path: Path) -> None:
    shop = Workshop(call_mode, tmp_path, max_file_bytes=1000)
    (shop.root / "large").write_bytes(b"x" * 2000)
    start = shop.run("cp -p large kept; head -c 2000 /dev/zero > large; touch -r kept large; rm kept")
    assert [(each.path.name, each.reason) for each in shop.plan(start).not_kept] == [("large", "too_large")]


@pytest.mark.parametrize("path", ["a.txt", "/nowhere/a.txt"])
def test_conflicts_that_the_plan_does_not_know_are_named(shop: Workshop, path: str) -> None:
    start = shop.write("a.txt", "1\n")
    with pytest.raises(UndoError, match=path):
        shop.rewind(start, conflicts={Path(path): "take"})
    assert (shop.root / "a.txt").read_text() == "1\n"


def test_a_store_of_another_version_is_refused_each_time(shop: Workshop, tmp_path: Path) -> None:
    shop.write("a.txt", "1\n")
    shop.history.close()
    with closing(sqlite3.connect(tmp_path / "history" / "files.db")) as database:
        database.execute("PRAGMA user_version = 99")
    for _ in range(2):
        with pytest.raises(
            UndoError, match="version 99, and this release reads 1; use the release that made it"
        ):
            shop.history.forget("1")
    assert listed(tmp_path / "history" / "processes") == []


def test_a_directory_that_was_there_keeps_its_mode(shop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / "history").chmod(0o755)
    shop.write("a.txt", "1\n")
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o755
    assert {stat.S_IMODE(each.stat().st_mode) & 0o077 for each in (tmp_path / "history").iterdir()} == {0}
