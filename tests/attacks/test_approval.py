"""What a person did not approve does not happen, whatever else of the same turn was approved."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call, calls
from tests.attacks.harness import Ground, snapshot
from tests.conftest import Colour

THREAD: Any = {"configurable": {"thread_id": "1"}}
APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "no"}


def write(path: str, content: str = "mine") -> tuple[str, dict[str, Any]]:
    return "write_file", {"file_path": path, "content": content}


def edited(path: str) -> dict[str, Any]:
    return {
        "type": "edit",
        "edited_action": {"name": "write_file", "args": {"file_path": path, "content": "edited"}},
    }


def decided(ground: Ground, colour: Colour, turn: Any, *decisions: dict[str, Any]) -> list[Any]:
    """Run one turn that waits for decisions; return the answers of the tools."""
    with ScriptedModel(turn, "Done.") as model:
        agent = create_deep_agent(
            model, checkpointer=InMemorySaver(), interrupt_on={"write_file": True}, **ground.options
        )
        asked = colour.invoke(agent, {"messages": "Go"}, THREAD)["__interrupt__"][0].value
        assert len(asked["action_requests"]) == len(decisions)
        result = colour.invoke(agent, Command(resume={"decisions": list(decisions)}), THREAD)
    return [message for message in result["messages"] if message.type == "tool"]


def test_nothing_of_a_turn_happens_before_a_decision(disk: Ground, colour: Colour) -> None:
    before = snapshot([disk.root])
    with ScriptedModel(calls(write("/a.txt"), write("/b.txt"))) as model:
        agent = create_deep_agent(
            model, checkpointer=InMemorySaver(), interrupt_on={"write_file": True}, **disk.options
        )
        colour.invoke(agent, {"messages": "Go"}, THREAD)

    assert snapshot([disk.root]) == before


def test_an_approved_call_takes_no_other_with_it(disk: Ground, colour: Colour) -> None:
    decided(disk, colour, calls(write("/a.txt"), write("/b.txt")), APPROVE, REJECT)

    assert (disk.root / "a.txt").exists()
    assert not (disk.root / "b.txt").exists()


def test_a_rejected_call_does_not_change_places_with_an_approved_one(disk: Ground, colour: Colour) -> None:
    turn = calls(write("/a.txt", "first"), ("ls", {"path": "/"}), write("/b.txt", "second"))
    decided(disk, colour, turn, REJECT, APPROVE)

    assert not (disk.root / "a.txt").exists()
    assert (disk.root / "b.txt").read_text() == "second"


@pytest.mark.parametrize("path", ["/../outside/new.txt", "/to-directory/new.txt", "~/new.txt", "C:/new.txt"])
def test_an_approval_edited_to_a_way_out_is_refused(linked: Ground, colour: Colour, path: str) -> None:
    before = snapshot(linked.kept)
    (answer,) = decided(linked, colour, calls(write("/a.txt")), edited(path))

    assert answer.additional_kwargs["error_code"] == "invalid_path"
    assert not (linked.root / "a.txt").exists()
    assert snapshot(linked.kept) == before


def test_a_subagent_is_no_way_round_an_approval(disk: Ground, colour: Colour) -> None:
    before = snapshot([disk.root])
    script = call("task", description="Write", subagent_type="general-purpose"), calls(write("/a.txt"))
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(
            model, checkpointer=InMemorySaver(), interrupt_on={"write_file": True}, **disk.options
        )
        asked = colour.invoke(agent, {"messages": "Go"}, THREAD)

    assert asked["__interrupt__"][0].value["action_requests"][0]["name"] == "write_file"
    assert snapshot([disk.root]) == before
