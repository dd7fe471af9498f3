"""What a person approved is the change of the file as it was when they were asked, and of no later one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": "Go"}
APPROVE: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
ASKING: Any = {"interrupt_on": dict.fromkeys(("write_file", "edit_file", "delete"), True)}
LAW: Any = {"permissions": [FilesystemPermission(["write"], ["/notes/**"], "interrupt")]}

CALLS = {
    "write": call("write_file", file_path="/notes/a", content="mine"),
    "edit": call("edit_file", file_path="/notes/a", old_string="as it was", new_string="mine"),
    "delete": call("delete", file_path="/notes/a"),
    "delete the directory": call("delete", file_path="/notes"),
}


def agent_on(root: Path, made: Any, **options: Any) -> Any:
    standing: Any = {"backend": FilesystemBackend(root), "checkpointer": InMemorySaver(), **ASKING}
    return create_deep_agent(ScriptedModel(made, "Done."), **{**standing, **options})


def answer(result: Any) -> Any:
    (found,) = [each for each in result["messages"] if each.type == "tool"]
    return found


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """A file that the agent never read."""
    (tmp_path / "notes").mkdir()
    file = tmp_path / "notes" / "a"
    file.write_text("as it was")
    return file


@pytest.mark.parametrize("made", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("asking", [ASKING, {**LAW, "interrupt_on": None}], ids=["interrupt_on", "rule"])
def test_a_file_that_changed_while_a_person_was_asked_stays(
    call_mode: CallMode, tmp_path: Path, note: Path, made: Any, asking: Any
) -> None:
    agent = agent_on(tmp_path, made, **asking)
    assert call_mode.invoke(agent, GO, THREAD)["__interrupt__"]
    note.write_text("as it was, and more")
    result = call_mode.invoke(agent, APPROVE, THREAD)

    assert note.read_text() == "as it was, and more"
    assert answer(result).additional_kwargs["error_code"] == "stale_version"
    assert "changed" in answer(result).text


@pytest.mark.parametrize("made", CALLS.values(), ids=CALLS)
def test_a_file_that_stayed_as_it_was_is_changed(tmp_path: Path, note: Path, made: Any) -> None:
    agent = agent_on(tmp_path, made)
    agent.invoke(GO, THREAD)
    result = agent.invoke(APPROVE, THREAD)

    assert answer(result).status == "success"
    assert not note.exists() or note.read_text() == "mine"


def test_a_file_that_appeared_while_a_person_was_asked_stays(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    agent = agent_on(tmp_path, CALLS["write"])
    agent.invoke(GO, THREAD)
    (tmp_path / "notes" / "a").write_text("theirs")
    result = agent.invoke(APPROVE, THREAD)

    assert (tmp_path / "notes" / "a").read_text() == "theirs"
    assert answer(result).additional_kwargs["error_code"] == "stale_version"


def test_a_file_that_appeared_in_a_directory_keeps_the_directory(tmp_path: Path, note: Path) -> None:
    agent = agent_on(tmp_path, CALLS["delete the directory"])
    agent.invoke(GO, THREAD)
    (note.parent / "b").write_text("theirs")
    result = agent.invoke(APPROVE, THREAD)

    assert (note.parent / "b").read_text() == "theirs"
    assert answer(result).additional_kwargs["error_code"] == "stale_version"


def test_a_file_that_is_gone_meanwhile_is_not_made_again(tmp_path: Path, note: Path) -> None:
    agent = agent_on(tmp_path, CALLS["write"])
    agent.invoke(GO, THREAD)
    note.unlink()

    assert answer(agent.invoke(APPROVE, THREAD)).additional_kwargs["error_code"] == "stale_version"
    assert not note.exists()


def test_a_place_that_a_person_chose_instead_is_judged_by_itself(tmp_path: Path, note: Path) -> None:
    agent = agent_on(tmp_path, CALLS["write"])
    agent.invoke(GO, THREAD)
    note.write_text("theirs")
    other = {"name": "write_file", "args": {"file_path": "/notes/b", "content": "mine"}}
    edit: Any = Command(resume={"decisions": [{"type": "edit", "edited_action": other}]})
    agent.invoke(edit, THREAD)

    assert note.read_text() == "theirs"
    assert (note.parent / "b").read_text() == "mine"


def test_a_subagent_that_asks_is_held_to_it_too(tmp_path: Path, note: Path) -> None:
    helper: Any = {
        "name": "helper",
        "description": "d",
        "model": ScriptedModel(CALLS["delete"], "It is kept."),
    }
    task = call("task", description="Delete", subagent_type="helper")
    agent = agent_on(tmp_path, task, subagents=[helper])
    agent.invoke(GO, THREAD)
    note.write_text("theirs")
    agent.invoke(APPROVE, THREAD)

    assert note.read_text() == "theirs"


@pytest.mark.parametrize("made", [CALLS["write"], CALLS["delete"]], ids=["write", "delete"])
def test_files_in_state_and_behind_a_route_are_held_to_it(tmp_path: Path, made: Any) -> None:
    agent = agent_on(tmp_path, made, backend=StateBackend())
    agent.invoke({**GO, "files": {"/notes/a": {"content": "as it was"}}}, THREAD)
    agent.update_state(THREAD, {"files": {"/notes/a": {"content": "theirs"}}}, "model")
    kept = agent.invoke(APPROVE, THREAD).get("files", {})
    assert kept["/notes/a"]["content"] == "theirs"

    routed = CompositeBackend(StateBackend(), routes={"/notes/": FilesystemBackend(tmp_path)})
    (tmp_path / "a").write_text("as it was")
    agent = agent_on(tmp_path, made, backend=routed)
    agent.invoke(GO, THREAD)
    (tmp_path / "a").write_text("theirs")
    agent.invoke(APPROVE, THREAD)
    assert (tmp_path / "a").read_text() == "theirs"


def test_what_nobody_asks_about_reads_no_version(tmp_path: Path, note: Path) -> None:
    """A change between the call and its run is none of approval's business where nobody is asked."""
    asked: list[str] = []

    class Watched(FilesystemBackend):
        def read(self, file_path: str, *args: Any, **options: Any) -> Any:
            asked.append(file_path)
            return super().read(file_path, *args, **options)

    agent = agent_on(tmp_path, CALLS["write"], backend=Watched(tmp_path), interrupt_on=None)
    agent.invoke(GO, THREAD)

    assert note.read_text() == "mine"
    assert asked == []
