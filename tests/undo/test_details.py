"""What a look, a plan and going back do where a person, an approval or a kill comes in between."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from deepagents import FilesystemPermission
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends._bytes import temporary_name
from deepagents.testing import call
from tests.conftest import CallMode
from tests.undo.workshop import Workshop, listed, names


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path) -> Workshop:
    return Workshop(call_mode, tmp_path)


def make_worker(shop: Workshop, work: Callable[[], object]) -> Any:
    """Make an agent with a tool of its own, and with nothing that runs commands."""

    def act() -> str:
        """Act."""
        work()
        return "ok"

    return shop.make_agent(FilesystemBackend(shop.root, virtual_mode=True), tools=[act])


def test_a_plan_stays_as_it_was_made(shop: Workshop) -> None:
    plan = shop.plan(shop.write("a.txt", "1\n"))
    for value, name in ((plan, "items"), (plan.items[0], "verdict"), (plan.target, "mark")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, getattr(value, name))


# -- what is looked at


def test_subagents_that_were_compiled_elsewhere_are_covered(shop: Workshop) -> None:
    def work(state: Any) -> Any:
        (shop.root / "a.txt").write_text("theirs\n")
        return {"messages": [AIMessage("Done.")]}

    (shop.root / "a.txt").write_text("mine\n")
    foreign: Any = {"name": "foreign", "description": "works", "runnable": RunnableLambda(work)}
    agent = shop.make_agent(FilesystemBackend(shop.root, virtual_mode=True), subagents=[foreign])
    start = shop.do(call("task", description="work", subagent_type="foreign"), agent=agent)
    assert names(shop.plan(start, agent).restored, shop.root) == ["a.txt"]


def test_only_what_differs_is_read(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (shop.root / f"{number}.txt").write_text("x" * 1000)
    shop.mode.call(shop.history, "coverage", shop.agent)
    # What is as young as these is read again.
    ten_seconds_on = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: ten_seconds_on)
    shop.run("true")
    opened: list[object] = []
    open_file = os.open

    def note(path: Any, *args: Any, **named: Any) -> int:
        opened.append(path)
        return open_file(path, *args, **named)

    monkeypatch.setattr(os, "open", note)
    shop.run("echo 1 > 7.txt")
    assert {each for each in opened if str(each).endswith(".txt")} == {"7.txt"}


def test_git_is_not_needed(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    for top in (shop.root, shop.root / "worktree"):
        top.mkdir(exist_ok=True)
        subprocess.run(["git", "init", "-q", top], check=True)
    git_file = shop.root / "worktree" / ".git"
    git_file.rename(shop.root.parent / "elsewhere")
    git_file.write_text(f"gitdir: {shop.root.parent / 'elsewhere'}\n")
    (shop.root / ".gitignore").write_text("*.log\n")
    before = shop.tree()

    def refuse(command: Any, *args: Any, **named: Any) -> Any:
        assert "git" not in str(command)
        return popen(command, *args, **named)

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", refuse)
    start = shop.run("mkdir d; echo 1 > a.log; echo 1 > worktree/a.log; echo 1 > worktree/a.txt")
    assert names(shop.plan(start).removed, shop.root) == ["d", "worktree/a.log", "worktree/a.txt"]
    shop.rewind(start)
    assert shop.tree() == {**before, "a.log": ("file", 0o644, b"1\n")}


def test_names_of_the_library_s_own_are_not_seen(shop: Workshop) -> None:
    name = temporary_name()
    start = shop.run(f"echo 1 > {name}; mkdir .deepagents; echo 1 > .deepagents/a.txt")
    assert names(shop.plan(start).removed, shop.root) == [".deepagents", ".deepagents/a.txt"]
    shop.rewind(start)
    assert listed(shop.root) == [name]


# -- what a person does


def test_what_a_person_put_back_by_hand_is_in_no_plan(shop: Workshop) -> None:
    (shop.root / "a.txt").write_text("0\n")
    start = shop.run("echo 1 > a.txt; echo 1 > b.txt")
    (shop.root / "a.txt").write_text("0\n")
    (shop.root / "b.txt").unlink()
    plan = shop.plan(start)
    assert plan.restored == plan.removed == plan.conflicts == plan.not_kept == ()


def test_a_file_stays_away_where_something_of_others_lies_now(shop: Workshop) -> None:
    (shop.root / "d").mkdir()
    (shop.root / "d" / "a.txt").write_text("a\n")
    (shop.root / "b.txt").write_text("b\n")
    start = shop.run("rm -r d b.txt")
    (shop.root / "d").write_text("mine\n")
    (shop.root / "b.txt").mkdir()
    plan = shop.plan(start)
    assert names(plan.conflicts, shop.root) == ["b.txt", "d", "d/a.txt"]
    assert all(each.reason for each in plan.conflicts)
    assert shop.rewind(start).changed == ()
    assert (shop.root / "d").read_text() == "mine\n"


def test_what_a_person_changed_during_a_step_is_shown_and_comes_back(shop: Workshop) -> None:
    (shop.root / "mine.txt").write_text("0\n")
    person = shop.root / "mine.txt"
    start = shop.do(call("act"), agent=(agent := make_worker(shop, lambda: person.write_text("by hand\n"))))
    assert names(shop.plan(start, agent).restored, shop.root) == ["mine.txt"]
    done = shop.rewind(start, agent)
    assert person.read_text() == "0\n"
    shop.rewind(done, agent)
    assert person.read_text() == "by hand\n"


def test_what_went_back_alone_can_be_written_without_reading_it_again(shop: Workshop) -> None:
    (shop.root / "a.txt").write_text("0\n")
    start = shop.do(
        call("read_file", file_path="/a.txt"), call("write_file", file_path="/a.txt", content="1\n")
    )
    shop.rewind(start, conversation=False)
    shop.write("a.txt", "2\n")
    assert (shop.root / "a.txt").read_text() == "2\n"


# -- approvals


def test_an_approval_waits_again_after_going_back_to_it(shop: Workshop) -> None:
    agent = shop.make_agent(interrupt_on={"execute": True})
    shop.model.then(call("execute", command="echo 1 >> ran"))
    shop.mode.invoke(agent, {"messages": "Run it"}, shop.thread)
    waits = shop.head
    for _ in range(2):
        shop.model.then("Done.")
        shop.mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), shop.thread)
        assert (shop.root / "ran").read_text() == "1\n"
        assert shop.rewind(waits, agent).config == shop.head
        assert listed(shop.root) == []
        # Asked anew: a run without input.
        shop.mode.invoke(agent, None, shop.thread)


# -- what lies elsewhere


def make_keeper(shop: Workshop, **options: Any) -> Any:
    """Make an agent with files on disk, in a store and in its state."""
    disk = FilesystemBackend(shop.root, virtual_mode=True)
    store = StoreBackend(namespace=lambda _: ("memories",))
    routes = {"/memories/": store, "/scratch/": StateBackend()}
    return shop.make_agent(CompositeBackend(disk, routes), **{"store": InMemoryStore(), **options})


def test_what_is_written_elsewhere_is_named(shop: Workshop) -> None:
    agent = make_keeper(shop)
    start = shop.do(call("write_file", file_path="/a.txt", content="1\n"), agent=agent)
    later = shop.do(
        call("write_file", file_path="/memories/user.md", content="likes tea\n"),
        call("write_file", file_path="/scratch/sum.md", content="3\n"),
        call("edit_file", file_path="/memories/user.md", old_string="tea", new_string="milk"),
        agent=agent,
    )
    said = [
        "/memories/user.md lies in none of the directories that go back, and stays as it is",
        "/scratch/sum.md is kept with the conversation, and goes back only together with that",
    ]
    for target in (start, later):
        assert list(shop.plan(target, agent).uncovered) == said
    assert shop.plan(shop.head, agent).uncovered == ()
    last = shop.do(call("write_file", file_path="/b.txt", content="1\n"), agent=agent)
    assert shop.plan(last, agent).uncovered == ()
    # What was said once is known to the next process, too.
    shop.history.close()
    assert list(shop.plan(later, agent).uncovered) == said


def test_what_was_not_written_elsewhere_is_not_named(shop: Workshop) -> None:
    agent = make_keeper(shop, permissions=[FilesystemPermission(["write"], ["/memories/rules/**"], "deny")])
    start = shop.do(
        call("write_file", file_path="/a.txt", content="1\n"),
        call("edit_file", file_path="/memories/user.md", old_string="tea", new_string="milk"),
        call("write_file", file_path="/memories/rules/a.md", content="none\n"),
        call("delete", file_path="/scratch/sum.md"),
        agent=agent,
    )
    plan = shop.plan(start, agent)
    assert names(plan.removed, shop.root) == ["a.txt"]
    assert plan.uncovered == ()


def test_what_may_have_been_written_elsewhere_though_it_failed_is_named(shop: Workshop) -> None:
    class Broken(InMemoryStore):
        def batch(self, ops: Any) -> Any:
            raise OSError("the connection broke")

        async def abatch(self, ops: Any) -> Any:
            raise OSError("the connection broke")

    agent = make_keeper(shop, store=Broken())
    start = shop.do(call("write_file", file_path="/memories/user.md", content="likes tea\n"), agent=agent)
    (said,) = shop.plan(start, agent).uncovered
    assert said.startswith("/memories/user.md lies in none of the directories that go back")


def test_what_was_written_elsewhere_before_a_check_said_no_is_named(shop: Workshop) -> None:
    def refuse(done: Any) -> ToolMessage:
        return ToolMessage("The check failed", tool_call_id=done.tool_call_id, status="error")

    class Check(AgentMiddleware):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return refuse(handler(request))

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return refuse(await handler(request))

    agent = make_keeper(shop, middleware=[Check()])
    start = shop.do(call("write_file", file_path="/memories/user.md", content="likes tea\n"), agent=agent)
    assert shop.plan(start, agent).uncovered == (
        "/memories/user.md lies in none of the directories that go back, and stays as it is",
    )


def test_an_agent_without_files_on_this_machine_is_named(shop: Workshop) -> None:
    agent = shop.make_agent(StoreBackend(namespace=lambda _: ("memories",)), store=InMemoryStore())
    start = shop.do(call("write_file", file_path="/user.md", content="likes tea\n"), agent=agent)
    assert shop.plan(start, agent).uncovered == ("the agent has no files on the disk of this machine",)
