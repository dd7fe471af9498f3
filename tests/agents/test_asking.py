"""What a person approved is what was asked about: no more, in no other agent, of no other kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, wrap_tool_call
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.errors import StackError
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}
LAW = FilesystemPermission(["write"], ["/law/"], "interrupt")
WRITE = call("write_file", file_path="/law/x", content="1")
APPROVE: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
GIVEN: Any = {"messages": "Go"}


class Other(HumanInTheLoopMiddleware[Any, Any, Any]):
    """An approval that cannot ask about paths."""

    @property
    def name(self) -> str:
        return "HumanInTheLoopMiddleware"


def other_approval() -> Any:
    return Other(interrupt_on={"execute": True})


def borrowed() -> FilesystemMiddleware:
    """File tools whose approval stands in another agent."""
    files = FilesystemMiddleware(permissions=[LAW])
    files.approval()
    return files


def made_before_the_rules() -> list[Any]:
    files = FilesystemMiddleware()
    return [files, files.approval({"execute": True})]


def test_an_approval_made_before_the_rules_asks_for_them(call_mode: CallMode) -> None:
    with ScriptedModel(WRITE, "Done.") as model:
        agent = create_deep_agent(
            model, middleware=made_before_the_rules(), permissions=[LAW], checkpointer=InMemorySaver()
        )
        assert call_mode.invoke(agent, GIVEN, THREAD)["__interrupt__"]
        done = call_mode.invoke(agent, APPROVE, THREAD)

    assert "/law/x" in done["files"]


@pytest.mark.parametrize("files", [borrowed, FilesystemMiddleware])
def test_an_approval_of_another_kind_is_refused_even_if_one_was_made_elsewhere(
    files: Callable[[], FilesystemMiddleware],
) -> None:
    with pytest.raises(StackError, match=r"approval\(\)"):
        create_deep_agent(ScriptedModel(), middleware=[files(), other_approval()], permissions=[LAW])
    helper: Any = {"name": "helper", "description": "helps", "middleware": [files(), other_approval()]}
    with pytest.raises(StackError, match=r"'helper'.*approval\(\)"):
        create_deep_agent(ScriptedModel(), permissions=[LAW], subagents=[helper])
    denies = FilesystemPermission(["write"], ["/law/"], "deny")
    assert create_deep_agent(ScriptedModel(), permissions=[denies], middleware=[other_approval()])


def test_an_approval_in_another_agent_permits_nothing_in_this_one() -> None:
    for stack in ([borrowed()], [borrowed(), other_approval()]):
        with ScriptedModel(WRITE, "Done.") as model:
            agent: Any = create_agent(model, middleware=stack, checkpointer=InMemorySaver())
            done = agent.invoke(GIVEN, THREAD)

        assert "nobody is set up" in done["messages"][2].text
        assert not done.get("files")


def test_an_approval_does_not_outlast_its_turn() -> None:
    """The same id again, in an agent that asks nobody any more."""
    saved = InMemorySaver()
    asking = FilesystemMiddleware(permissions=[LAW])
    for stack, asks in (([asking, asking.approval()], True), ([asking], False)):
        with ScriptedModel(call("write_file", file_path="/law/x", content="1"), "Done.") as model:
            agent: Any = create_agent(model, middleware=stack, checkpointer=saved)
            done = agent.invoke(GIVEN, THREAD)
            done = agent.invoke(APPROVE, THREAD) if asks else done
        assert ("nobody is set up" in done["messages"][-2].text) is not asks


def test_an_approved_write_is_no_approved_look() -> None:
    shown = call("edit_file", file_path="/s/x", old_string="password = foo", new_string="z")
    seen: Any = {"/s/x": {"content": "password = hunter2\n"}}
    both: Any = [FilesystemPermission(["read", "write"], ["/s/**"], "interrupt")]
    looks: Any = [FilesystemPermission(["read"], ["/s/**"], "interrupt")]
    for rules in (both, looks):
        with ScriptedModel(shown, "Done.") as model:
            agent = create_deep_agent(model, permissions=rules, checkpointer=InMemorySaver())
            done = agent.invoke({**GIVEN, "files": seen}, THREAD)
            done = agent.invoke(APPROVE, THREAD) if rules is both else done
        (answer,) = [each for each in done["messages"] if each.type == "tool"]
        assert answer.additional_kwargs["error_code"] == "no_match"
        assert "hunter2" not in answer.text


@pytest.mark.parametrize(
    ("tool", "operation"), [("read_file", "read"), ("write_file", "write"), ("delete", "write")]
)
def test_what_was_denied_when_nobody_was_asked_is_not_approved_later(
    call_mode: CallMode, tmp_path: Path, tool: str, operation: Any
) -> None:
    for name in ("w", "secret"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret/k").write_text("key")
    way = tmp_path / "w/link"
    way.symlink_to("../secret/k" if tool != "delete" else "../secret")
    rules = [
        FilesystemPermission([operation], ["/secret/"], "deny"),
        FilesystemPermission([operation], ["/w/**"], "interrupt"),
    ]

    @wrap_tool_call
    def turns(request: Any, handler: Any) -> Any:
        return handler(turned(request, way))

    @wrap_tool_call
    async def aturns(request: Any, handler: Any) -> Any:
        return await handler(turned(request, way))

    turning: AgentMiddleware[Any, Any, Any] = turns if call_mode.name == "sync" else aturns
    arguments = {"file_path": "/w/link/k" if tool == "delete" else "/w/link"}
    arguments |= {"content": "mine"} if tool == "write_file" else {}
    with ScriptedModel(call(tool, **arguments), "Done.") as model:
        agent = create_deep_agent(
            model,
            backend=FilesystemBackend(tmp_path),
            permissions=rules,
            middleware=[turning],
            checkpointer=InMemorySaver(),
        )
        done = call_mode.invoke(agent, GIVEN, THREAD)

    assert "__interrupt__" not in done
    (answer,) = [each for each in done["messages"] if each.type == "tool"]
    assert answer.additional_kwargs["error_code"] == "permission_denied"
    left = way / "k" if tool == "delete" else way
    assert left.read_text() == "needs approval"


def turned(request: Any, way: Path) -> Any:
    """Put something else where the link stood."""
    way.unlink()
    if request.tool_call["name"] == "delete":
        way.mkdir()
        (way / "k").write_text("needs approval")
    else:
        way.write_text("needs approval")
    return request


def test_a_person_may_turn_a_call_to_a_place_that_waits() -> None:
    to: Any = {"name": "write_file", "args": {"file_path": "/law/y", "content": "2"}}
    edit: Command[Any] = Command(resume={"decisions": [{"type": "edit", "edited_action": to}]})
    for first, more in (("/law/x", {}), ("/open", {"interrupt_on": {"write_file": True}})):
        with ScriptedModel(call("write_file", file_path=first, content="1"), "Done.") as model:
            options: Any = more
            agent = create_deep_agent(model, permissions=[LAW], checkpointer=InMemorySaver(), **options)
            assert agent.invoke(GIVEN, THREAD)["__interrupt__"]
            assert set(agent.invoke(edit, THREAD)["files"]) == {"/law/y"}
