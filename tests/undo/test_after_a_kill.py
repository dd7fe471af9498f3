"""What a person does after a process was killed within a step is never taken for the step's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.testing import ScriptedModel, call
from deepagents.undo import FileHistory
from tests.conftest import CallMode
from tests.programs import FORKING
from tests.undo.test_at_once import Behind
from tests.undo.workshop import Workshop, die_noticed, mounted, names

PERSON = "a day's work\n"


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path) -> Workshop:
    shop = Workshop(call_mode, tmp_path)
    (shop.root / "sub").mkdir()
    for name in ("a.txt", "b.txt", "sub/c.txt", "sub/d.txt"):
        (shop.root / name).write_text("old\n")
    return shop


def work_and_die(root: Path, history: Path, command: str) -> None:
    def work() -> str:
        """Work."""
        subprocess.run(command, shell=True, cwd=root, check=True)
        die_noticed(history)
        return "dead"

    agent = make_other(root, history, ScriptedModel(call("work")), tools=[work])
    agent.invoke({"messages": "Go"}, {"configurable": {"thread_id": "1"}})


def work_and_die_unnoticed(root: Path, history: Path, command: str) -> None:
    # By this a process says that it lives.
    os.utime = lambda *args, **named: None
    work_and_die(root, history, f"{command}; kill -9 $PPID")


def write_and_die(root: Path, history: Path) -> None:
    write = call("write_file", file_path="/sub/c.txt", content="agent\n")
    behind = Behind(lambda: die_noticed(history))
    agent = make_other(root, history, ScriptedModel(write), middleware=[behind])
    agent.invoke({"messages": "Go"}, {"configurable": {"thread_id": "1"}})


def make_other(root: Path, history: Path, model: ScriptedModel, **options: Any) -> Any:
    return create_deep_agent(
        model,
        backend=LocalShellBackend(root),
        checkpointer=MemorySaver(),
        file_history=FileHistory(history),
        **options,
    )


def let_die(shop: Workshop, target: Callable[..., None], *about: Any) -> Any:
    """Let another process die at work in the thread; return the checkpoint before."""
    start = shop.run("true")
    child = FORKING.Process(target=target, args=(shop.root, shop.history.directory, *about))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    return start


def test_what_a_person_does_after_a_kill_stays_and_is_named(shop: Workshop) -> None:
    command = "echo agent > a.txt; echo agent > b.txt; echo agent > sub/new.txt; rm sub/d.txt"
    start = let_die(shop, work_and_die, command)
    for name in ("b.txt", "sub/c.txt", "mine.txt"):
        (shop.root / name).write_text(PERSON)

    plan = shop.plan(start)
    assert names(plan.conflicts, shop.root) == ["b.txt", "mine.txt", "sub/c.txt"]
    assert {each.reason for each in plan.conflicts} == {
        "changed by others, or by a step of this thread that was cut off"
    }
    assert names(plan.restored, shop.root) == ["a.txt", "sub/d.txt"]
    assert names(plan.removed, shop.root) == ["sub/new.txt"]
    shop.rewind(start)
    for name in ("b.txt", "sub/c.txt", "mine.txt"):
        assert (shop.root / name).read_text() == PERSON
    assert (shop.root / "a.txt").read_text() == "old\n"
    # Who knows better may still take them.
    shop.rewind(start, conflicts={shop.root / "b.txt": "take"})
    assert (shop.root / "b.txt").read_text() == "old\n"


@pytest.mark.parametrize("next_step", ["command", "file tool"])
def test_it_stays_though_a_step_has_found_it_and_goes_on_from_it(shop: Workshop, next_step: str) -> None:
    start = let_die(shop, work_and_die, "echo agent > a.txt")
    (shop.root / "b.txt").write_text(PERSON)
    if next_step == "command":
        shop.run("echo more >> b.txt")
    else:
        shop.do(call("write_file", file_path="/b.txt", content=f"{PERSON}more\n"))
    shop.rewind(start)
    assert (shop.root / "b.txt").read_text() == f"{PERSON}more\n"
    assert (shop.root / "a.txt").read_text() == "old\n"


def test_what_a_person_deletes_after_a_kill_stays_away(shop: Workshop) -> None:
    start = let_die(shop, work_and_die, "rm sub/d.txt")
    (shop.root / "b.txt").unlink()
    plan = shop.plan(start)
    assert names(plan.conflicts, shop.root) == ["b.txt"]
    assert names(plan.restored, shop.root) == ["sub/d.txt"]


@pytest.mark.parametrize("place", ["moved", "sub"])
def test_a_directory_that_a_person_moves_there_keeps_its_old_files(shop: Workshop, place: str) -> None:
    other = shop.root.parent / "other"
    other.mkdir()
    for name in ("c.txt", "more.txt"):
        (other / name).write_text(PERSON)
    start = let_die(shop, work_and_die, "echo agent > a.txt")
    if place == "sub":
        (shop.root / "sub").rename(shop.root.parent / "away")
    other.rename(shop.root / place)
    shop.rewind(start)
    for name in ("c.txt", "more.txt"):
        assert (shop.root / place / name).read_text() == PERSON
    assert (shop.root / "a.txt").read_text() == "old\n"


def test_what_a_person_writes_where_a_file_tool_died_stays(shop: Workshop) -> None:
    start = let_die(shop, write_and_die)
    (shop.root / "sub" / "c.txt").write_text(PERSON)
    assert names(shop.plan(start).conflicts, shop.root) == ["sub/c.txt"]
    shop.rewind(start)
    assert (shop.root / "sub" / "c.txt").read_text() == PERSON


def test_what_a_person_does_stays_where_a_disk_counts_whole_seconds(
    tmp_path: Path, call_mode: CallMode
) -> None:
    image = tmp_path / "image"
    image.touch()
    os.truncate(image, 8 << 20)
    # A disk as older ones are, whose entries have no room for more of a time.
    make = ["mkfs.ext4", "-q", "-I", "128", image]
    if not shutil.which("mkfs.ext4") or subprocess.run(make, check=False).returncode:
        pytest.skip("such a disk cannot be made here")
    with mounted(tmp_path / "project", "-o", "loop", source=image):
        shop = Workshop(call_mode, tmp_path)
        (shop.root / "a.txt").write_text("old\n")
        start = let_die(shop, work_and_die, "true")
        (shop.root / "a.txt").write_text(PERSON)
        assert names(shop.plan(start).conflicts, shop.root) == ["a.txt"]


def test_what_a_step_does_behind_its_last_sign_of_life_is_named(shop: Workshop) -> None:
    start = let_die(shop, work_and_die_unnoticed, "echo agent > a.txt")
    assert names(shop.plan(start).conflicts, shop.root) == ["a.txt"]
    shop.rewind(start, conflicts="take")
    assert (shop.root / "a.txt").read_text() == "old\n"
