"""Files that a subagent works on without their being saved again for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from deepagents import create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests import programs
from tests.agents.delegating import text
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}
KEPT = "kept by the main agent, and not saved for a child"


def contents(files: Any) -> dict[str, str]:
    return {path: data["content"] for path, data in sorted(files.items())}


GIVEN = {"/a.txt": text("one"), "/b.txt": text("bee"), "/kept.txt": text(KEPT)}
AFTER = {"/a.txt": "two", "/kept.txt": KEPT, "/new.txt": "new"}


@tool
def ask() -> str:
    """Ask a person."""
    return f"they said {interrupt('well?')}"


def turns(*script: Any) -> ScriptedModel:
    """Say the next of these by how many turns the history holds, so that any turn can be taken again."""

    def say(asked: Asked) -> Any:
        return script[sum(message.type == "ai" for message in asked.messages)]

    return ScriptedModel(always=say)


def delegating(*children: Any, **settings: Any) -> Any:
    names = [child["name"] for child in children]
    wanted = calls(*(("task", {"description": "Go", "subagent_type": name}) for name in names))
    return create_deep_agent(turns(wanted, "Done."), subagents=list(children), **settings)


def worker(name: str, *script: Any, **rest: Any) -> Any:
    return {"name": name, "description": f"does {name}", "model": turns(*script), "tools": [ask], **rest}


def changing(name: str = "editor") -> Any:
    """A subagent that changes files, asks, and then looks at one that it changed."""
    return worker(
        name,
        call("edit_file", file_path="/a.txt", old_string="one", new_string="two"),
        call("delete", file_path="/b.txt"),
        call("ask"),
        call("grep", pattern="two", output_mode="files_with_matches"),
        call("write_file", file_path="/new.txt", content="new"),
        "Changed.",
    )


def fresh() -> Any:
    return {"configurable": {"thread_id": os.urandom(8).hex()}}


def test_a_child_that_waits_for_a_person_goes_on_with_what_it_changed(
    call_mode: CallMode, saver: Any
) -> None:
    thread = fresh()
    agent = delegating(changing(), checkpointer=saver)
    waiting = call_mode.invoke(agent, {"messages": "Go", "files": GIVEN}, thread)
    done = call_mode.invoke(agent, Command(resume="yes"), thread)

    assert contents(waiting["files"]) == contents(GIVEN)
    assert contents(done["files"]) == AFTER
    assert contents(call_mode.call(agent, "get_state", thread).values["files"]) == AFTER


def test_children_side_by_side_each_go_on_with_their_own(call_mode: CallMode, saver: Any) -> None:
    thread = fresh()
    other = worker("other", call("ask"), call("write_file", file_path="/other.txt", content="else"), "Done.")
    agent = delegating(changing(), other, checkpointer=saver)
    waiting = call_mode.invoke(agent, {"messages": "Go", "files": GIVEN}, thread)
    answers = {each.id: "yes" for each in waiting["__interrupt__"]}
    done = call_mode.invoke(agent, Command(resume=answers), thread)

    assert len(answers) == 2
    assert contents(done["files"]) == {**AFTER, "/other.txt": "else"}


def test_a_childs_own_child_sees_what_both_of_them_see(call_mode: CallMode, saver: Any) -> None:
    thread = fresh()
    middle = delegating(changing(), name="middle")
    outer = create_deep_agent(
        turns(call("task", description="Go", subagent_type="middle"), "Done."),
        subagents=[{"name": "middle", "description": "passes it on", "runnable": middle}],
        checkpointer=saver,
    )
    call_mode.invoke(outer, {"messages": "Go", "files": GIVEN}, thread)
    done = call_mode.invoke(outer, Command(resume="yes"), thread)

    assert contents(done["files"]) == AFTER


def test_a_thread_taken_up_at_an_earlier_point_delegates_again(call_mode: CallMode, saver: Any) -> None:
    thread = fresh()
    agent = delegating(changing(), checkpointer=saver)
    call_mode.invoke(agent, {"messages": "Go", "files": GIVEN}, thread)
    asked = call_mode.call(agent, "get_state", thread).config
    call_mode.invoke(agent, Command(resume="yes"), thread)

    waiting = call_mode.invoke(agent, None, asked)
    assert contents(waiting["files"]) == contents(GIVEN)
    assert contents(call_mode.invoke(agent, Command(resume="yes"), thread)["files"]) == AFTER


def test_a_fork_with_other_files_hands_down_those(call_mode: CallMode, saver: Any) -> None:
    thread = fresh()
    agent = delegating(changing(), checkpointer=saver)
    call_mode.invoke(agent, {"messages": "Go", "files": GIVEN}, thread)
    asked = call_mode.call(agent, "get_state", thread).config
    call_mode.invoke(agent, Command(resume="yes"), thread)

    changed = {"files": {"/kept.txt": text("forked"), "/b.txt": None}}
    forked = call_mode.call(agent, "update_state", asked, changed, as_node="model")
    call_mode.invoke(agent, None, forked)
    done = call_mode.invoke(agent, Command(resume="yes"), thread)

    assert contents(done["files"]) == {**AFTER, "/kept.txt": "forked"}


def test_a_resume_that_brings_files_merges_them_with_what_the_child_changes() -> None:
    agent = delegating(changing(), checkpointer=InMemorySaver())
    agent.invoke({"messages": "Go", "files": GIVEN}, THREAD)
    done = agent.invoke(Command(resume="yes", update={"files": {"/more.txt": text("more")}}), THREAD)

    assert contents(done["files"]) == {**AFTER, "/more.txt": "more"}


def test_the_state_of_a_waiting_child_can_be_read_from_outside(call_mode: CallMode, saver: Any) -> None:
    thread = fresh()
    agent = delegating(changing(), checkpointer=saver)
    call_mode.invoke(agent, {"messages": "Go", "files": GIVEN}, thread)

    assert contents(call_mode.call(agent, "get_state", thread, subgraphs=True).values["files"]) == contents(
        GIVEN
    )


def test_a_child_that_writes_often_is_saved_whole_and_goes_on(call_mode: CallMode, saver: Any) -> None:
    thread = fresh()
    many = [call("write_file", file_path=f"/{number}.txt", content="x" * 50) for number in range(60)]
    child = worker("busy", *many, call("ask"), call("delete", file_path="/b.txt"), "Done.")
    agent = delegating(child, checkpointer=saver)
    call_mode.invoke(agent, {"messages": "Go", "files": GIVEN}, thread)
    done = call_mode.invoke(agent, Command(resume="yes"), thread)

    assert done["files"].keys() == (GIVEN.keys() - {"/b.txt"}) | {f"/{number}.txt" for number in range(60)}


KILLED = """
import os, sys
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.agents import test_handed_files as here

@tool
def ask() -> str:
    "End the process in the middle of a step."
    os._exit(9)

here.ask = ask
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    agent = here.delegating(here.changing(), checkpointer=saver)
    agent.invoke({"messages": "Go", "files": here.GIVEN}, here.THREAD, durability="sync")
"""


@pytest.mark.slow
def test_a_run_that_was_killed_inside_a_child_goes_on_there(tmp_path: Path) -> None:
    place = str(tmp_path / "threads.db")
    ended = programs.run(KILLED, place)
    with SqliteSaver.from_conn_string(place) as saver:
        agent = delegating(changing(), checkpointer=saver)
        before = agent.get_state(THREAD).values["files"]
        agent.invoke(None, THREAD)
        done = agent.invoke(Command(resume="yes"), THREAD)

    assert ended.returncode == 9
    assert contents(before) == contents(GIVEN)
    assert contents(done["files"]) == AFTER


def held(saver: Any) -> str:
    """Return all that a saver in memory holds, as text."""
    saved = [part for of in saver.storage["1"].values() for each in of.values() for part in each[:2]]
    saved += [write[2] for of in saver.writes.values() for write in of.values()]
    return b"".join(data for _, data in (*saved, *saver.blobs.values())).decode("utf-8", "replace")


def test_what_is_handed_down_is_not_saved_for_the_child() -> None:
    delegated, alone = InMemorySaver(), InMemorySaver()
    agents = delegating(changing(), checkpointer=delegated), create_deep_agent(turns(""), checkpointer=alone)
    for agent in agents:
        agent.invoke({"messages": "Go", "files": GIVEN}, THREAD)

    assert held(delegated).count(KEPT) == held(alone).count(KEPT) > 0


class PlainFiles(MessagesState):
    files: dict[str, Any]


def own_graph(state: type[Any], seen: list[Any], **settings: Any) -> Any:
    def look(given: Any) -> Any:
        seen.append(given.get("files"))
        return {"messages": [("ai", "Seen.")]}

    graph: Any = StateGraph(state)
    graph.add_node("look", look)
    graph.set_entry_point("look")
    graph.add_edge("look", END)
    return graph.compile(**settings)


def test_a_graph_of_the_callers_own_gets_plain_files() -> None:
    seen: list[Any] = []
    children = [
        {"name": "plain", "description": "sees", "runnable": own_graph(PlainFiles, seen)},
        {"name": "none", "description": "sees none", "runnable": own_graph(MessagesState, seen)},
    ]
    for child in children:
        agent = delegating(child, checkpointer=InMemorySaver())
        agent.invoke({"messages": "Go", "files": GIVEN}, THREAD)

    assert seen == [GIVEN, None]


def test_a_child_with_a_memory_of_its_own_keeps_its_files() -> None:
    child = create_deep_agent(
        ScriptedModel(call("write_file", file_path="/mine.txt", content="mine"), "One.", call("ls"), "Two."),
        checkpointer=True,
    )
    spec: Any = {"name": "lasting", "description": "remembers", "runnable": child}
    with ScriptedModel(
        call("task", description="Go", subagent_type="lasting"),
        "Done.",
        call("task", description="Again", subagent_type="lasting"),
        "Done.",
    ) as model:
        agent = create_deep_agent(model, subagents=[spec], checkpointer=InMemorySaver())
        agent.invoke({"messages": "Go", "files": GIVEN}, THREAD)
        done = agent.invoke({"messages": "Again"}, THREAD)

    assert contents(done["files"]) == {**contents(GIVEN), "/mine.txt": "mine"}


def test_a_child_with_a_memory_of_its_own_keeps_what_the_main_agent_removed() -> None:
    own = ScriptedModel(
        call("write_file", file_path="/mine.txt", content="mine"),
        "One.",
        call("read_file", file_path="/mine.txt"),
        "Two.",
    )
    spec: Any = {
        "name": "lasting",
        "description": "remembers",
        "runnable": create_deep_agent(own, checkpointer=True),
    }
    go = call("task", description="Go", subagent_type="lasting")
    model = ScriptedModel(go, "Done.", call("delete", file_path="/mine.txt"), go, "Done.")
    agent = create_deep_agent(model, subagents=[spec], checkpointer=InMemorySaver())
    for _ in range(2):
        agent.invoke({"messages": "Go", "files": GIVEN}, THREAD)

    assert own.asked[-1].last.endswith("mine")


@pytest.mark.parametrize("given", [text("mine"), "mine"])
def test_a_file_of_any_name_that_a_caller_brings_is_a_file(
    call_mode: CallMode, saver: Any, given: Any
) -> None:
    thread = fresh()
    agent = create_deep_agent(ScriptedModel("One.", "Two."), checkpointer=saver)
    call_mode.invoke(agent, {"messages": "Go", "files": GIVEN}, thread)
    call_mode.invoke(agent, {"messages": "Go on", "files": {"__handed_down__": given}}, thread)

    kept = call_mode.call(agent, "get_state", thread).values["files"]
    assert contents(kept) == {**contents(GIVEN), "/__handed_down__": "mine"}


def test_a_mark_that_a_caller_forges_takes_no_file_away() -> None:
    agent = create_deep_agent(ScriptedModel("One.", "Two."), checkpointer=InMemorySaver())
    agent.invoke({"messages": "Go", "files": GIVEN}, THREAD)
    with pytest.raises(TypeError, match="must be text or a mapping"):
        agent.invoke({"messages": "Go on", "files": {"__handed_down__": b"forged"}}, THREAD)

    done = agent.invoke({"messages": "Go on"}, THREAD)
    assert contents(done["files"]) == contents(GIVEN)
