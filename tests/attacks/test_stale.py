"""Nobody's work is overwritten by somebody who had not seen it, whoever came in between and however."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call, calls
from deepagents.testing.scripted import ScriptedAnswer
from tests.attacks.harness import Ground, in_turn
from tests.conftest import CallMode

READ = call("read_file", file_path="/in.txt")
THEIRS = "their work\n"
CLOBBERING = {
    "a write": call("write_file", file_path="/in.txt", content="mine"),
    "an edit": call("edit_file", file_path="/in.txt", old_string="inside", new_string="mine"),
    "an edit of all": call(
        "edit_file", file_path="/in.txt", old_string="work", new_string="mine", replace_all=True
    ),
    "a write by another spelling": call("write_file", file_path="//./in.txt", content="mine"),
    "a write by a relative path": call("write_file", file_path="in.txt", content="mine"),
    "a write by backslashes": call("write_file", file_path="\\in.txt", content="mine"),
    "a write with the same length": call("write_file", file_path="/in.txt", content="x" * len(THEIRS)),
}
IN_BETWEEN: dict[str, Callable[[Path], object]] = {
    "changes it": lambda path: path.write_text(THEIRS),
    "replaces it": lambda path: (
        path.with_name("new").write_text(THEIRS),
        path.with_name("new").rename(path),
    ),
    "keeps its size": lambda path: path.write_text("theirs\n"),
    "keeps its time": lambda path: _with_time_of(path, THEIRS),
}


def _with_time_of(path: Path, text: str) -> None:
    about = path.stat()
    path.write_text(text)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def meanwhile(
    happens: Callable[[Path], object], path: Path, then: ScriptedAnswer
) -> Callable[[Asked], ScriptedAnswer]:
    """Say: somebody did this while the model was thinking."""

    def reply(asked: Asked) -> ScriptedAnswer:
        happens(path)
        return then

    return reply


@pytest.mark.parametrize("change", IN_BETWEEN.values(), ids=list(IN_BETWEEN))
@in_turn("clobber", CLOBBERING)
def test_what_changed_since_it_was_read_stays(
    disk: Ground, call_mode: CallMode, clobber: Any, change: Callable[[Path], object]
) -> None:
    path = disk.root / "in.txt"
    disk.harmless |= {"read_file"}
    run = disk.run(call_mode, READ, meanwhile(change, path, clobber))

    assert run.problems() == []
    assert run.codes[-1] == "stale_version"
    assert path.read_text() in (THEIRS, "theirs\n")


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
def test_another_name_of_what_was_read_gives_no_right_to_what_it_is_now(
    disk: Ground, call_mode: CallMode, tool: str
) -> None:
    path = disk.root / "in.txt"
    (disk.root / "alias").symlink_to("in.txt")
    (disk.root / "here").symlink_to(".")
    disk.harmless |= {"read_file"}
    said = {"write_file": {"content": "mine"}, "edit_file": {"old_string": "inside", "new_string": "mine"}}
    for name in ("/alias", "/here/in.txt"):
        path.write_text("inside\n")
        clobber = call(tool, file_path=name, **said[tool])
        run = disk.run(call_mode, READ, meanwhile(lambda path: path.write_text(THEIRS), path, clobber))
        assert run.codes[-1] == "stale_version"
        assert path.read_text() == THEIRS


def test_what_was_deleted_since_it_was_read_is_not_brought_back(disk: Ground, call_mode: CallMode) -> None:
    path = disk.root / "in.txt"
    disk.harmless |= {"read_file"}
    run = disk.run(call_mode, READ, meanwhile(Path.unlink, path, CLOBBERING["a write"]))

    assert run.problems() == []
    assert run.codes[-1] == "stale_version"
    assert not path.exists()


def test_what_the_refusal_advises_leads_on_after_a_deletion(call_mode: CallMode) -> None:
    write = call("write_file", file_path="/in.txt", content="mine")
    with ScriptedModel(READ, "Read.", write, READ, write.model_copy(deep=True), "Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        given = {"/in.txt": {"content": "inside\n", "encoding": "utf-8"}}
        call_mode.invoke(agent, {"messages": "Read", "files": given}, thread)
        agent.update_state(thread, {"files": {"/in.txt": None}})
        result = call_mode.invoke(agent, {"messages": "Write"}, thread)

    refused, gone, written = [each for each in result["messages"] if each.type == "tool"][1:]
    assert "was deleted since it was read. Read it again" in refused.text
    assert [each.status for each in (refused, gone, written)] == ["error", "error", "success"]
    assert result["files"]["/in.txt"]["content"] == "mine"


def test_an_old_read_gives_no_right_after_a_failed_write(disk: Ground, call_mode: CallMode) -> None:
    path = disk.root / "in.txt"
    disk.harmless |= {"read_file"}
    write = CLOBBERING["a write"]
    again = [
        write.model_copy(update={"tool_calls": [{**write.tool_calls[0], "id": f"again-{n}"}]}) for n in "12"
    ]
    run = disk.run(call_mode, READ, meanwhile(lambda path: path.write_text(THEIRS), path, write), *again)

    assert run.codes == [None, "stale_version", "stale_version", "stale_version"]
    assert path.read_text() == THEIRS


def test_a_search_or_a_listing_is_no_reading(disk: Ground, call_mode: CallMode) -> None:
    path = disk.root / "in.txt"
    disk.harmless |= {"read_file"}
    look = calls(
        ("grep", {"pattern": "work", "output_mode": "content"}),
        ("ls", {"path": "/"}),
        ("glob", {"pattern": "*"}),
    )
    changed = meanwhile(lambda path: path.write_text(THEIRS), path, look)
    run = disk.run(call_mode, READ, changed, CLOBBERING["a write"])

    assert run.codes[-1] == "stale_version"
    assert path.read_text() == THEIRS


def both(where: str, disk: Ground) -> Any:
    if where == "disk":
        return {}
    disk.options.pop("backend")
    return {"files": {"/in.txt": {"content": "inside\n", "encoding": "utf-8"}}}


@pytest.mark.parametrize("where", ["disk", "state"])
def test_a_parent_does_not_overwrite_its_subagent(disk: Ground, call_mode: CallMode, where: str) -> None:
    disk.given = both(where, disk)
    disk.harmless |= {"read_file", "task", "edit_file"}
    run = disk.run(
        call_mode,
        READ,
        call("task", description="Change it", subagent_type="general-purpose"),
        call("edit_file", file_path="/in.txt", old_string="inside", new_string="the child's"),
        "Changed.",
        CLOBBERING["a write"],
    )

    assert run.problems() == []
    assert run.codes[-1] == "stale_version"


def test_a_thread_does_not_overwrite_what_changed_while_it_slept(disk: Ground, call_mode: CallMode) -> None:
    config: Any = {"configurable": {"thread_id": "1"}}
    path = disk.root / "in.txt"
    with ScriptedModel(READ, "Read.", CLOBBERING["a write"], "Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver(), **disk.options)
        call_mode.invoke(agent, {"messages": "Read it"}, config)
        path.write_text(THEIRS)
        result = call_mode.invoke(agent, {"messages": "Write it"}, config)

    assert result["messages"][-2].additional_kwargs["error_code"] == "stale_version"
    assert path.read_text() == THEIRS


SECOND = {
    "a write": ("write_file", {"file_path": "/in.txt", "content": "second"}),
    "a write by another spelling": ("write_file", {"file_path": "//in.txt/.", "content": "second"}),
    "an edit by a relative path": (
        "edit_file",
        {"file_path": "in.txt", "old_string": "inside", "new_string": "second"},
    ),
    "a deletion": ("delete", {"file_path": "/in.txt"}),
    "a deletion of what holds it": ("delete", {"file_path": "/d/.."}),
}


@in_turn("second", SECOND)
def test_of_two_changes_in_one_turn_the_second_is_refused(
    disk: Ground, call_mode: CallMode, second: tuple[str, dict[str, Any]]
) -> None:
    run = disk.run(call_mode, calls(("write_file", {"file_path": "/in.txt", "content": "first"}), second))

    assert run.codes[0] is None
    assert run.codes[1] in ("parallel_mutation", "invalid_path")
    assert (disk.root / "in.txt").read_text() == "first"
