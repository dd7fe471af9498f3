"""Take an agent's work back, the conversation and the files, and forth again."""

from __future__ import annotations

import asyncio
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.errors import ConfigError
from deepagents.permissions import FilesystemPermission
from deepagents.testing import ScriptedModel, call, calls
from deepagents.undo import FileHistory, PlanOutdated, UndoError
from tests.conftest import CallMode
from tests.undo.workshop import Workshop, copy_thread, listed, names


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path) -> Workshop:
    return Workshop(call_mode, tmp_path)


def test_all_of_a_turn_goes_back_and_forth(shop: Workshop) -> None:
    (shop.root / "kept.txt").write_text("mine\n")
    (shop.root / "edited.txt").write_text("one\n")
    before = shop.tree()
    start = shop.do(
        calls(
            ("write_file", {"file_path": "/edited.txt", "content": "two\n"}),
            ("write_file", {"file_path": "/new/deep/made.txt", "content": "made\n"}),
        ),
        call("execute", command="rm kept.txt; mkdir d; echo x > d/x; chmod 600 d/x; ln -s d link"),
        call("delete", file_path="/new"),
    )
    after, said = shop.tree(), shop.messages()
    plan = shop.plan(start)
    assert names(plan.restored, shop.root) == ["edited.txt", "kept.txt"]
    assert names(plan.removed, shop.root) == ["d", "d/x", "link"]
    assert plan.conflicts == plan.not_kept == ()
    assert [each.before_bytes for each in plan.restored] == [b"one\n", b"mine\n"]
    assert [each.after_bytes for each in plan.restored] == [b"two\n", None]
    assert shop.tree() == after
    done = shop.rewind(start)
    assert shop.tree() == before
    assert shop.messages() == []
    assert done.config == shop.head
    again = shop.rewind(done)
    assert (shop.tree(), shop.messages()) == (after, said)
    shop.rewind(again)
    assert (shop.tree(), shop.messages()) == (before, [])


def test_files_alone_and_the_agent_learns_of_it(shop: Workshop) -> None:
    (shop.root / "a.txt").write_text("one\n")
    start = shop.do(
        call("read_file", file_path="/a.txt"), call("write_file", file_path="/a.txt", content="two\n")
    )
    said = shop.messages()
    done = shop.rewind(start, conversation=False)
    assert (shop.root / "a.txt").read_text() == "one\n"
    assert shop.messages() == said
    assert done.config == done.left == shop.head
    shop.model.then("Seen.", "Nothing new.")
    shop.mode.invoke(shop.agent, {"messages": "Now?"}, shop.thread)
    asked = shop.model.asked[-1].messages
    assert "took these files back" in asked[-1].text
    assert str(shop.root / "a.txt") in asked[-1].text
    shop.mode.invoke(shop.agent, {"messages": "And now?"}, shop.thread)
    assert "took these files back" not in shop.model.asked[-1].messages[-1].text


def test_files_alone_go_forth_again_without_the_conversation(shop: Workshop) -> None:
    start = shop.write("a.txt", "one\n")
    done = shop.rewind(start, conversation=False)
    shop.run("true")
    said, head = shop.messages(), shop.head
    again = shop.rewind(done)
    assert (shop.root / "a.txt").read_text() == "one\n"
    assert (shop.messages(), shop.head, again.config) == (said, head, head)


def test_what_was_done_after_going_back_is_not_said_to_be_of_others(shop: Workshop) -> None:
    start = shop.write("a.txt", "one\n")
    done = shop.rewind(start)
    shop.write("a.txt", "two\n")
    assert [each.reason for each in shop.plan(done).conflicts] == ["changed since by this thread"]
    (shop.root / "a.txt").write_text("by hand\n")
    assert [each.reason for each in shop.plan(done).conflicts] == ["changed by others since"]


def test_conversation_alone_keeps_the_files(shop: Workshop) -> None:
    start = shop.write("a.txt", "one\n")
    done = shop.rewind(start, files=False)
    assert (shop.root / "a.txt").read_text() == "one\n"
    assert shop.messages() == []
    assert shop.plan(done.config).removed == ()
    later = shop.write("b.txt", "two\n")
    shop.rewind(later)
    assert listed(shop.root) == ["a.txt"]


def test_going_back_to_where_one_is_changes_nothing(shop: Workshop) -> None:
    shop.run("echo x > x")
    head, tree = shop.head, shop.tree()
    done = shop.rewind(shop.thread)
    assert done.config == head == shop.head
    assert shop.tree() == tree
    assert done.changed == ()


def test_what_others_did_stays(shop: Workshop) -> None:
    (shop.root / "one.txt").write_text("1\n")
    start = shop.run("mkdir d; echo a > d/agent; echo 2 > one.txt; echo 3 > three.txt")
    (shop.root / "d" / "person").write_text("mine\n")
    (shop.root / "one.txt").write_text("by hand\n")
    (shop.root / "other.txt").write_text("mine\n")
    plan = shop.plan(start)
    assert names(plan.conflicts, shop.root) == ["d", "one.txt"]
    assert all(each.reason for each in plan.conflicts)
    done = shop.rewind(start)
    assert listed(shop.root) == ["d", "one.txt", "other.txt"]
    assert listed(shop.root / "d") == ["person"]
    assert (shop.root / "one.txt").read_text() == "by hand\n"
    assert sorted(done.kept) == [shop.root / "d", shop.root / "one.txt"]


def test_conflicts_can_be_taken(shop: Workshop) -> None:
    (shop.root / "one.txt").write_text("1\n")
    (shop.root / "two.txt").write_text("2\n")
    start = shop.run("echo x > one.txt; echo x > two.txt")
    (shop.root / "one.txt").write_text("by hand\n")
    (shop.root / "two.txt").write_text("by hand\n")
    done = shop.rewind(start, conflicts={shop.root / "one.txt": "take"})
    assert (shop.root / "one.txt").read_text() == "1\n"
    assert (shop.root / "two.txt").read_text() == "by hand\n"
    shop.rewind(done)
    assert (shop.root / "one.txt").read_text() == "by hand\n"


def test_others_between_two_steps_are_a_conflict(shop: Workshop) -> None:
    (shop.root / "a").write_text("0\n")
    start = shop.run("echo 1 > a")
    (shop.root / "a").write_text("by hand\n")
    shop.run("echo 2 > a")
    plan = shop.plan(start)
    assert names(plan.conflicts, shop.root) == ["a"]
    assert "between" in plan.conflicts[0].reason


def test_a_plan_is_outdated_once_a_path_changes(shop: Workshop) -> None:
    start = shop.write("a.txt", "one\n")
    plan = shop.plan(start)
    (shop.root / "a.txt").write_text("by hand\n")
    tree, head = shop.tree(), shop.head
    with pytest.raises(PlanOutdated, match=r"a\.txt"):
        shop.mode.call(shop.history, "rewind", shop.agent, plan)
    assert (shop.tree(), shop.head) == (tree, head)


def test_directories_files_and_links_in_place_of_each_other(shop: Workshop) -> None:
    (shop.root / "file").write_text("f\n")
    (shop.root / "folder" / "inner").mkdir(parents=True)
    (shop.root / "folder" / "inner" / "a").write_text("a\n")
    (shop.root / "target").mkdir()
    (shop.root / "target" / "t").write_text("t\n")
    (shop.root / "link").symlink_to("target")
    (shop.root / "shut").mkdir(mode=0o500)
    before = shop.tree()
    start = shop.run(
        "rm file; mkdir -p file/x; echo y > file/x/y; rm -r folder; echo f > folder; "
        "rm link; mkdir link; echo l > link/l; chmod 700 shut; echo s > shut/s; chmod 500 shut; "
        "rm -r target; ln -s file target"
    )
    after = shop.tree()
    done = shop.rewind(start)
    assert shop.tree() == before
    shop.rewind(done)
    assert shop.tree() == after


def test_names_of_any_bytes(shop: Workshop) -> None:
    odd = os.fsdecode(b"b\xff\n\t'\" \\")
    (shop.root / odd).write_bytes(b"\0\xff")
    before = shop.tree()
    start = shop.run('for each in *; do echo changed > "$each"; done; printf x > "$(printf \'n\\377w\')"')
    plan = shop.plan(start)
    assert plan.restored[0].path == shop.root / odd
    shop.rewind(start)
    assert shop.tree() == before


def test_what_cannot_be_kept_is_named(call_mode: CallMode, tmp_path: Path) -> None:
    shop = Workshop(call_mode, tmp_path, max_file_bytes=1000)
    (shop.root / "large").write_bytes(b"x" * 2000)
    start = shop.run("echo small > large; head -c 5000 /dev/zero > made; mkfifo pipe; echo ok > ok")
    plan = shop.plan(start)
    reasons = {each.path.name: each.reason for each in plan.not_kept}
    assert reasons == {"large": "too_large", "made": "too_large", "pipe": "special"}
    shop.rewind(start)
    assert listed(shop.root) == ["large", "made", "pipe"]


def test_a_first_look_right_before_a_command_knows_what_is_ignored(shop: Workshop) -> None:
    (shop.root / ".git").mkdir()
    (shop.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (shop.root / ".gitignore").write_text("*.log\n")
    (shop.root / "mine.log").write_text("mine\n")
    asked = call("execute", command="echo x > a.log; echo x > a.txt")
    # The model has answered before this process began, so that no look was made while it thought.
    shop.mode.call(
        shop.agent, "update_state", shop.thread, {"messages": [HumanMessage("Go on"), asked]}, as_node="model"
    )
    start = shop.head
    shop.model.then("Done.")
    shop.mode.invoke(shop.agent, None, shop.thread)

    assert names(shop.plan(start).removed, shop.root) == ["a.txt"]


def test_git_is_never_touched(shop: Workshop) -> None:
    for folder in (shop.root, shop.root / "nested"):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (shop.root / ".gitignore").write_text("*.log\nbuild/\n")
    (shop.root / "build").mkdir()
    (shop.root / "build" / "old").write_text("old\n")
    (shop.root / "nested" / "a.log").write_text("not ignored by the outer rules\n")
    start = shop.do(
        call(
            "execute",
            command="echo new > build/old; echo x > a.log; echo x > .git/HEAD; echo y > nested/a.log",
        ),
        call("write_file", file_path="/build/by_tool.txt", content="t"),
    )
    plan = shop.plan(start)
    assert names(plan.removed, shop.root) == ["build/by_tool.txt"]
    assert names(plan.restored, shop.root) == ["nested/a.log"]
    assert any("git ignores" in each for each in plan.uncovered)
    assert any("git keeps" in each for each in plan.uncovered)
    shop.rewind(start)
    assert (shop.root / ".git" / "HEAD").read_text() == "x\n"
    assert (shop.root / "build" / "old").read_text() == "new\n"


def test_files_that_stop_being_ignored_are_not_taken_for_new(shop: Workshop) -> None:
    (shop.root / ".git").mkdir()
    (shop.root / ".gitignore").write_text("build/\n")
    (shop.root / "build").mkdir()
    (shop.root / "build" / "precious").write_text("old\n")
    start = shop.run("rm .gitignore; echo x > x")
    plan = shop.plan(start)
    assert {each.reason for each in plan.not_kept} == {"before_undo"}
    shop.rewind(start)
    assert (shop.root / "build" / "precious").read_text() == "old\n"
    assert (shop.root / ".gitignore").read_text() == "build/\n"


@pytest.mark.parametrize("tool", ["command", "file"])
def test_what_an_agent_ignores_by_a_rule_of_its_own_goes_back(shop: Workshop, tool: str) -> None:
    (shop.root / "mine.txt").write_text("mine\n")
    (shop.root / "old.log").write_text("old\n")
    (shop.root / ".gitignore").write_text("*.log\n")
    before = shop.tree()
    ignore = {
        "command": call("execute", command="echo '*' > .gitignore; echo 1 > new.txt"),
        "file": call("edit_file", file_path="/.gitignore", old_string="*.log", new_string="*"),
    }[tool]
    read = call("read_file", file_path="/.gitignore")
    more = call("execute", command="mkdir d; echo 2 > d/more.txt; echo 3 > more.log; echo 4 > mine.txt")
    start = shop.do(read, ignore, more)
    shop.rewind(start)
    assert shop.tree() == {**before, "more.log": ("file", 0o644, b"3\n")}

    shop.run("echo '*' > .gitignore")
    later = shop.run("echo 5 > later.txt")
    plan = shop.plan(later)
    assert (plan.restored, plan.removed, plan.conflicts) == ((), (), ())
    assert any("what git ignores" in each for each in plan.uncovered)


def test_what_an_agent_ignores_and_installs_is_not_kept_where_it_is_much(
    call_mode: CallMode, tmp_path: Path
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=100)
    packages = "mkdir packages; cd packages; touch $(seq 30)"
    start = shop.run(f"echo packages > .gitignore; echo 1 > a.txt; {packages}")
    assert len(listed(shop.root / "packages")) == 30
    plan = shop.plan(start)
    assert names(plan.removed, shop.root) == [".gitignore", "a.txt"]
    assert any("what git ignores" in each for each in plan.uncovered)
    assert shop.mode.call(shop.history, "coverage", shop.agent).commands


def test_much_that_is_ignored_in_one_tree_hides_nothing_in_another(
    call_mode: CallMode, tmp_path: Path
) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=100)
    (tmp_path / "other").mkdir()
    other = Workshop(CallMode("sync", asyncio.Runner()), tmp_path / "other", history=shop.history)
    other.thread = {"configurable": {"thread_id": "2"}}

    @tool
    def install() -> str:
        """Let another agent install much in a directory of its own."""
        other.run("echo packages > .gitignore; mkdir packages; cd packages; touch $(seq 30)")
        return "ok"

    work = [call("execute", command=f"echo {line}") for line in ("'*.log' > .gitignore", "1 > a.log")]
    agent = shop.make_agent(tools=[install])
    start = shop.do(work[0], call("install"), work[1], agent=agent)
    assert names(shop.plan(start, agent).removed, shop.root) == [".gitignore", "a.log"]


def test_file_tools_alone_where_a_tree_is_too_large(call_mode: CallMode, tmp_path: Path) -> None:
    shop = Workshop(call_mode, tmp_path, max_files=20)
    for number in range(30):
        (shop.root / f"{number}.txt").write_text("x")
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.commands) == (True, False)
    assert "more than 20 files" in covered.why
    start = shop.do(
        call("write_file", file_path="/1.txt", content="changed"), call("execute", command="echo y > 2.txt")
    )
    plan = shop.plan(start)
    assert names(plan.restored, shop.root) == ["1.txt"]
    assert sum("not covered" in each for each in plan.uncovered) == 1


def test_home_is_never_looked_at(
    call_mode: CallMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "project"))
    shop = Workshop(call_mode, tmp_path)
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.commands) == (True, False)
    start = shop.write("a.txt", "one\n")
    shop.rewind(start)
    assert listed(shop.root) == []


def test_rules_bind_going_back_too(shop: Workshop) -> None:
    (shop.root / "secret.txt").write_text("1\n")
    start = shop.write("secret.txt", "2\n")
    rule = FilesystemPermission(operations=["write"], paths=["/secret.txt"], mode="deny")
    ruled = shop.make_agent(FilesystemBackend(shop.root), permissions=[rule])
    plan = shop.plan(start, ruled)
    assert "rule" in plan.conflicts[0].reason
    shop.mode.call(shop.history, "rewind", ruled, plan, conflicts="take")
    assert (shop.root / "secret.txt").read_text() == "2\n"


def test_subagents_are_covered(shop: Workshop) -> None:
    start = shop.do(
        call("task", description="one", subagent_type="general-purpose"),
        call("execute", command="mkdir s; echo s > s/s"),
        call("write_file", file_path="/s/t.txt", content="t"),
        AIMessage("Reported."),
    )
    assert listed(shop.root / "s") == ["s", "t.txt"]
    # The checkpoint behind the task has its files.
    assert shop.plan(shop.head).removed == ()
    shop.rewind(start)
    assert listed(shop.root) == []


def test_routes_on_disk_are_covered(shop: Workshop, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "n.txt").write_text("1\n")
    backend = CompositeBackend(StateBackend(), {"/notes/": FilesystemBackend(notes)})
    agent = shop.make_agent(backend)
    start = shop.do(call("write_file", file_path="/notes/n.txt", content="2\n"), agent=agent)
    plan = shop.plan(start, agent)
    assert [each.path for each in plan.restored] == [notes / "n.txt"]
    shop.rewind(start, agent)
    assert (notes / "n.txt").read_text() == "1\n"


def test_own_tools_are_covered(shop: Workshop) -> None:
    def format_all() -> str:
        """Format all files."""
        (shop.root / "a.txt").write_text("formatted\n")
        return "ok"

    (shop.root / "a.txt").write_text("raw\n")
    agent = shop.make_agent(FilesystemBackend(shop.root), tools=[format_all])
    start = shop.do(call("format_all"), agent=agent)
    shop.rewind(start, agent)
    assert (shop.root / "a.txt").read_text() == "raw\n"


def test_commands_in_the_background_count_until_they_end(shop: Workshop) -> None:
    start = shop.do(
        call("execute", command="echo 1 > early; sleep 0.1; echo 2 > late; exec sleep 60", background=True),
        call("execute", command="while [ ! -e late ]; do sleep 0.02; done"),
    )
    (shop.root / "person").write_text("mine\n")
    assert listed(shop.root) == ["early", "late", "person"]
    plan = shop.plan(start)
    assert names(plan.removed, shop.root) == ["early", "late"]
    shop.rewind(start)
    assert listed(shop.root) == ["person"]


def test_two_threads_each_take_their_own_back(shop: Workshop) -> None:
    second: Any = {"configurable": {"thread_id": "2"}}
    first_start = shop.run("echo 1 > one; echo 1 > both")
    second_start = shop.run("echo 2 > two; echo 2 > both", thread=second)
    plan = shop.plan(first_start)
    assert (names(plan.removed, shop.root), names(plan.conflicts, shop.root)) == (["one"], ["both"])
    shop.rewind(second_start)
    assert listed(shop.root) == ["both", "one"]
    shop.rewind(first_start)
    assert listed(shop.root) == []


def run_at_once(shop: Workshop) -> dict[str, Any]:
    """Let two threads write a file each while the other's command runs; return their agents by thread."""
    agents: dict[str, Any] = {}
    for thread, own, other in (("1", "one", "two"), ("2", "two", "one")):
        wait = "while [ ! -e {other}.{mark} ]; do sleep 0.02; done"
        steps = [f"touch {own}.{mark}; {wait.format(other=other, mark=mark)}" for mark in ("runs", "done")]
        model = ScriptedModel(call("execute", command=f"{steps[0]}; echo {own} > {own}; {steps[1]}"), "Done.")
        agents[thread] = create_deep_agent(
            model, backend=LocalShellBackend(shop.root), checkpointer=shop.saver, file_history=shop.history
        )
    with ThreadPoolExecutor() as pool:
        for running in [
            pool.submit(agent.invoke, {"messages": "Go"}, {"configurable": {"thread_id": thread}})
            for thread, agent in agents.items()
        ]:
            running.result(60)
    return agents


AT_ONCE = "changed while several threads were at work on it"


@pytest.mark.parametrize("call_mode", ["sync"], indirect=True)
def test_commands_at_the_same_time_are_conflicts_for_both(shop: Workshop) -> None:
    for thread, agent in run_at_once(shop).items():
        first = [*agent.get_state_history({"configurable": {"thread_id": thread}})][-1].config
        plan = shop.plan(first, agent)
        assert {"one", "two"} <= set(names(plan.conflicts, shop.root))
        assert {each.reason for each in plan.conflicts if each.path.name in ("one", "two")} == {AT_ONCE}


@pytest.mark.parametrize("call_mode", ["sync"], indirect=True)
def test_what_several_threads_did_after_going_back_is_of_none_alone(shop: Workshop) -> None:
    done = shop.rewind(shop.write("one", "before\n"))
    run_at_once(shop)
    assert [each.reason for each in shop.plan(done).conflicts] == [AT_ONCE]


def test_a_copied_thread_keeps_its_points(shop: Workshop) -> None:
    start = shop.write("a.txt", "1\n")
    shop.write("a.txt", "2\n")
    copy: Any = {"configurable": {"thread_id": "copy"}}
    copy_thread(shop.saver, "1", "copy")
    shop.write("a.txt", "3\n", thread=copy)
    plan = shop.plan({"configurable": {**start["configurable"], "thread_id": "copy"}})
    assert names(plan.removed, shop.root) == ["a.txt"]


def test_a_fork_without_going_back_has_the_files_as_they_are(shop: Workshop) -> None:
    shop.write("a.txt", "1\n")
    middle = shop.write("b.txt", "1\n")
    shop.write("c.txt", "1\n", thread=middle)
    shop.write("c.txt", "2\n")
    assert names(shop.plan(middle).removed, shop.root) == ["b.txt", "c.txt"]
    shop.rewind(middle)
    assert listed(shop.root) == ["a.txt"]


def test_an_approval_half_way_through_a_step(shop: Workshop) -> None:
    agent = shop.make_agent(interrupt_on={"execute": True})
    shop.write("a.txt", "0\n", agent=agent)
    tree = shop.tree()
    shop.model.then(
        calls(
            ("write_file", {"file_path": "/a.txt", "content": "1\n"}),
            ("execute", {"command": "echo run > ran"}),
        ),
        "Done.",
    )
    shop.mode.invoke(agent, {"messages": "Both"}, shop.thread)
    head = shop.head
    shop.rewind(head, agent)
    assert shop.tree() == tree


def test_an_approval_that_waits_goes_on_waiting(shop: Workshop) -> None:
    agent = shop.make_agent(interrupt_on={"execute": True})
    shop.model.then(call("execute", command="echo run > ran"))
    shop.mode.invoke(agent, {"messages": "Run it"}, shop.thread)
    head = shop.head
    assert shop.rewind(shop.thread, agent).config == head == shop.head
    shop.model.then("Done.")
    shop.mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), shop.thread)
    assert (shop.root / "ran").exists()


def test_changes_since_a_checkpoint(shop: Workshop) -> None:
    (shop.root / "a.txt").write_text("0\n")
    start = shop.run("echo 1 > a.txt; echo b > b.txt")
    middle = shop.run("rm b.txt; echo 2 > a.txt")
    found = shop.mode.call(shop.history, "changes", shop.agent, start)
    assert [(each.path.name, each.before_bytes, each.after_bytes) for each in found] == [
        ("a.txt", b"0\n", b"2\n")
    ]
    until = shop.mode.call(shop.history, "changes", shop.agent, start, until=middle)
    assert [(each.path.name, each.after_bytes) for each in until] == [("a.txt", b"1\n"), ("b.txt", b"b\n")]


def test_wrong_uses_say_what_to_do(shop: Workshop, tmp_path: Path) -> None:
    shop.write("a.txt", "1\n")
    other = create_deep_agent(ScriptedModel(), checkpointer=MemorySaver())
    for target, agent, said in (
        (shop.thread, other, "file_history="),
        ({"configurable": {"thread_id": "1", "checkpoint_id": "none"}}, shop.agent, "no checkpoint 'none'"),
        ({"configurable": {"thread_id": "none"}}, shop.agent, "no thread 'none'"),
        ({}, shop.agent, "thread_id"),
    ):
        with pytest.raises(UndoError, match=said):
            shop.plan(target, agent)
    with pytest.raises(UndoError, match="'keep' or 'take'"):
        shop.rewind(shop.thread, conflicts="all")
    with pytest.raises(ConfigError, match="FileHistory"):
        create_deep_agent(ScriptedModel(), file_history=tmp_path)  # pyright: ignore[reportArgumentType]


def test_a_store_that_cannot_be_written_fails_no_step(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a directory")
    shop = Workshop(call_mode, tmp_path, history=FileHistory(tmp_path / "taken" / "history"))
    start = shop.run("echo x > x")
    assert (shop.root / "x").exists()
    covered = shop.mode.call(shop.history, "coverage", shop.agent)
    assert (covered.files, covered.commands) == (False, False)
    with pytest.raises(UndoError, match="cannot be used"):
        shop.plan(start)


def test_the_store_is_private_and_leaves_nothing_in_the_directory(shop: Workshop, tmp_path: Path) -> None:
    start = shop.run("echo x > x")
    shop.rewind(start)
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o700
    assert listed(shop.root) == []
    shop.history.close()
    assert shop.history.size() > 0


def test_a_step_outlives_that_its_history_is_closed(shop: Workshop) -> None:
    other = create_deep_agent(
        ScriptedModel(),
        backend=LocalShellBackend(shop.root),
        checkpointer=MemorySaver(),
        file_history=(history := FileHistory(shop.history.directory)),
    )

    def work() -> str:
        """Work."""
        (shop.root / "a").write_text("a")
        shop.history.close()
        history.coverage(other)
        (shop.root / "b").write_text("b")
        history.coverage(other)
        return "ok"

    agent = shop.make_agent(tools=[work])
    start = shop.do(call("work"), agent=agent)
    assert names(shop.plan(start, agent).removed, shop.root) == ["a", "b"]
    shop.history.close()
    history.close()
    assert listed(shop.history.directory / "processes") == []


def test_the_oldest_records_make_room(call_mode: CallMode, tmp_path: Path) -> None:
    shop = Workshop(call_mode, tmp_path, max_bytes=600_000)
    (shop.root / "first.txt").write_text("mine")
    start = shop.write("first.txt", "theirs")
    shop.do(*[call("write_file", file_path="/a.txt", content=os.urandom(20_000).hex()) for _ in range(30)])
    assert 0 < shop.history.size() <= 600_000
    plan = shop.plan(start)
    assert {each.path.name: each.reason for each in plan.not_kept}["a.txt"] == "dropped"
    assert any("dropped" in each for each in plan.uncovered)


def test_dropping_a_thread_drops_its_records(shop: Workshop) -> None:
    start = shop.write("a.txt", "1\n")
    shop.history.forget("1")
    assert shop.plan(start).removed == ()


def test_a_copy_keeps_its_points_when_its_source_is_dropped(shop: Workshop) -> None:
    start = shop.write("a.txt", "one\n")
    copy_thread(shop.saver, "1", "copy")
    copied: Any = {"configurable": {"thread_id": "copy"}}
    shop.mode.call(shop.history, "note_copy", shop.agent, copied)
    shop.history.forget("1")
    of_copy: Any = {"configurable": {**start["configurable"], "thread_id": "copy"}}
    assert names(shop.plan(of_copy).removed, shop.root) == ["a.txt"]
    with pytest.raises(UndoError, match="no thread"):
        shop.mode.call(shop.history, "note_copy", shop.agent, {"configurable": {"thread_id": "none"}})


def test_records_that_copies_needed_go_with_the_last_of_them(shop: Workshop) -> None:
    for number in range(3):
        shop.write("a.txt", os.urandom(100_000).hex() + str(number))
    for source, name in (("1", "copy"), ("copy", "copy of it")):
        copy_thread(shop.saver, source, name)
        shop.mode.call(shop.history, "note_copy", shop.agent, {"configurable": {"thread_id": name}})
    for name in ("1", "copy"):
        shop.history.forget(name)
    shop.history.close()
    kept = shop.history.size()
    shop.history.forget("copy of it")
    shop.history.close()
    assert shop.history.size() < kept - 200_000


def test_a_thread_under_a_name_that_was_used_before_has_its_own_records(shop: Workshop) -> None:
    shop.do(call("write_file", file_path="/old.txt", content="1\n"), call("execute", command="echo 1 > o"))
    first = shop.write("older.txt", "1\n")
    copied: Any = {"configurable": {"thread_id": "copy"}}
    copy_thread(shop.saver, "1", "copy")
    shop.mode.call(shop.history, "note_copy", shop.agent, copied)
    of_copy: Any = {"configurable": {**first["configurable"], "thread_id": "copy"}}
    shop.history.forget("1")
    shop.saver.delete_thread("1")

    start = shop.run("echo 1 > new.txt")
    assert names(shop.plan(start).removed, shop.root) == ["new.txt"]
    assert names(shop.plan(of_copy).removed, shop.root) == ["older.txt"]
    changed = shop.mode.call(shop.history, "changes", shop.agent, start)
    assert names(changed, shop.root) == ["new.txt"]
    # A copy of the new one, which goes on when that is dropped too, and then the first copy.
    again: Any = {"configurable": {"thread_id": "copy of the new one"}}
    copy_thread(shop.saver, "1", "copy of the new one")
    shop.mode.call(shop.history, "note_copy", shop.agent, again)
    of_again: Any = {"configurable": {**start["configurable"], "thread_id": "copy of the new one"}}
    for gone in ("copy", "1"):
        shop.history.forget(gone)
        assert names(shop.plan(of_again).removed, shop.root) == ["new.txt"]


def test_the_records_of_the_newest_stay_when_a_copy_of_the_thread_of_old_goes(shop: Workshop) -> None:
    shop.write("old.txt", "1\n")
    copy_thread(shop.saver, "1", "copy")
    shop.mode.call(shop.history, "note_copy", shop.agent, {"configurable": {"thread_id": "copy"}})
    shop.history.forget("1")
    shop.saver.delete_thread("1")
    start = shop.write("new.txt", "1\n")
    shop.history.forget("copy")
    assert names(shop.plan(start).removed, shop.root) == ["new.txt"]


def test_paths_have_the_names_of_the_tools(shop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    inner = FilesystemBackend(tmp_path / "notes", virtual_mode=True)
    routed = shop.make_agent(CompositeBackend(LocalShellBackend(shop.root), {"/notes/": inner}))
    plain = shop.make_agent(FilesystemBackend(shop.root, virtual_mode=False))
    for agent, path, name in (
        (shop.agent, shop.root / "d" / "a.txt", "/d/a.txt"),
        (shop.agent, shop.root, "/"),
        (routed, tmp_path / "notes" / "a.txt", "/notes/a.txt"),
        (routed, tmp_path / "notes", "/notes"),
        (routed, shop.root / "a.txt", "/a.txt"),
        (plain, shop.root / "a.txt", str(shop.root / "a.txt")),
        (shop.agent, tmp_path / "elsewhere", str(tmp_path / "elsewhere")),
    ):
        assert shop.history.name_path(agent, path) == name
    assert shop.history.roots(routed) == (tmp_path / "notes", shop.root)
