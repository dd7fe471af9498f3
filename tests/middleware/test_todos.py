"""The to-do list: written whole, read back, kept in state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain.tools import ToolRuntime
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.todos import TodoListMiddleware
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode

PLAN = [
    {"content": "look", "status": "completed"},
    {"content": "act", "status": "in_progress"},
    {"content": "check", "status": "pending"},
]


def test_a_plan_is_kept_and_read_back(call_mode: CallMode) -> None:
    with ScriptedModel(call("write_todos", todos=PLAN), call("read_todos"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model), {"messages": "Go"})

    assert result["todos"] == PLAN
    assert result["messages"][-2].text == "[x] look\n[>] act\n[ ] check"


def test_the_same_plan_once_more_is_told_apart_from_work(call_mode: CallMode) -> None:
    plan = call("write_todos", todos=PLAN)
    done = call("write_todos", todos=[{**each, "status": "completed"} for each in PLAN])
    with ScriptedModel(plan, plan, call("ls", path="/"), done, done, "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model), {"messages": "Go"})

    _, same, _, _, end = (each.text for each in result["messages"] if each.type == "tool")
    known = "The to-do list was the same before: nothing was changed. "
    assert same == f"{known}Do the next step with another tool: write_file, edit_file."
    assert end == f"{known}Give the answer: all is completed."


def test_steps_are_not_completed_by_the_plan_alone(tmp_path: Path, call_mode: CallMode) -> None:
    plan = call("write_todos", todos=PLAN)
    later = call("write_todos", todos=[{"content": "look", "status": "completed"}])
    with ScriptedModel(plan, call("ls", path="/"), later, "Done.", plan, "Done.") as model:
        agent = create_deep_agent(
            model,
            backend=FilesystemBackend(root_dir=tmp_path, virtual_mode=True),
            checkpointer=InMemorySaver(),
        )
        thread = {"configurable": {"thread_id": "1"}}
        first = call_mode.invoke(agent, {"messages": "Go"}, thread)["messages"]
        again = call_mode.invoke(agent, {"messages": "Once more"}, thread)["messages"]

    early, _, after_work = (each.text for each in first if each.type == "tool")
    note = "No other tool was called yet. If a step needs one, call it now: write_file, edit_file."
    assert early.endswith(f"}}]\n\n{note}")
    assert after_work.endswith("}]")
    assert again[-2].text.endswith("}]")


def test_an_empty_plan_says_so() -> None:
    with ScriptedModel(call("read_todos"), "Done.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    assert result["messages"][-2].text == "The to-do list is empty."


def test_a_status_that_is_none_is_refused() -> None:
    with ScriptedModel(call("write_todos", todos=[{"content": "x", "status": "soon"}]), "Oh.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    assert result["messages"][-2].status == "error"


def test_two_plans_in_one_turn_are_both_refused() -> None:
    both = calls(("write_todos", {"todos": PLAN}), ("write_todos", {"todos": []}))
    with ScriptedModel(both, "Oh.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    assert [message.status for message in result["messages"] if message.type == "tool"] == ["error", "error"]


def test_a_state_without_messages_can_hold_a_plan(call_mode: CallMode) -> None:
    runtime: Any = ToolRuntime(
        state={}, context=None, config={}, stream_writer=print, tool_call_id="1", store=None
    )
    write = TodoListMiddleware().tools[0]
    asked = {
        "type": "tool_call",
        "name": "write_todos",
        "id": "1",
        "args": {"todos": PLAN, "runtime": runtime},
    }

    assert call_mode.invoke(write, asked).update["todos"] == PLAN
