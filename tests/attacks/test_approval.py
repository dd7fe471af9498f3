"""What a person did not approve does not happen, whatever else of the same turn was approved."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.errors import StackError
from deepagents.permissions import FilesystemPermission
from deepagents.testing import ScriptedModel, call, calls
from tests.attacks.harness import CANARY, HINT, Ground, in_turn, snapshot
from tests.attacks.test_rules import ground
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}
APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "no"}


def write(path: str, content: str = "mine") -> tuple[str, dict[str, Any]]:
    return "write_file", {"file_path": path, "content": content}


def edited(path: str) -> dict[str, Any]:
    return {
        "type": "edit",
        "edited_action": {"name": "write_file", "args": {"file_path": path, "content": "edited"}},
    }


def decided(ground: Ground, call_mode: CallMode, turn: Any, *decisions: dict[str, Any]) -> list[Any]:
    """Run one turn that waits for decisions; return the answers of the tools."""
    with ScriptedModel(turn, "Done.") as model:
        agent = create_deep_agent(
            model, checkpointer=InMemorySaver(), interrupt_on={"write_file": True}, **ground.options
        )
        asked = call_mode.invoke(agent, {"messages": "Go"}, THREAD)["__interrupt__"][0].value
        assert len(asked["action_requests"]) == len(decisions)
        result = call_mode.invoke(agent, Command(resume={"decisions": list(decisions)}), THREAD)
    return [message for message in result["messages"] if message.type == "tool"]


def test_nothing_of_a_turn_happens_before_a_decision(disk: Ground, call_mode: CallMode) -> None:
    before = snapshot([disk.root])
    with ScriptedModel(calls(write("/a.txt"), write("/b.txt"))) as model:
        agent = create_deep_agent(
            model, checkpointer=InMemorySaver(), interrupt_on={"write_file": True}, **disk.options
        )
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)

    assert snapshot([disk.root]) == before


def test_an_approved_call_takes_no_other_with_it(disk: Ground, call_mode: CallMode) -> None:
    decided(disk, call_mode, calls(write("/a.txt"), write("/b.txt")), APPROVE, REJECT)

    assert (disk.root / "a.txt").exists()
    assert not (disk.root / "b.txt").exists()


def test_a_rejected_call_does_not_change_places_with_an_approved_one(
    disk: Ground, call_mode: CallMode
) -> None:
    turn = calls(write("/a.txt", "first"), ("ls", {"path": "/"}), write("/b.txt", "second"))
    decided(disk, call_mode, turn, REJECT, APPROVE)

    assert not (disk.root / "a.txt").exists()
    assert (disk.root / "b.txt").read_text() == "second"


@pytest.mark.parametrize("path", ["/../outside/new.txt", "/to-directory/new.txt", "~/new.txt", "C:/new.txt"])
def test_an_approval_edited_to_a_way_out_is_refused(linked: Ground, call_mode: CallMode, path: str) -> None:
    before = snapshot(linked.kept)
    (answer,) = decided(linked, call_mode, calls(write("/a.txt")), edited(path))

    assert answer.additional_kwargs["error_code"] == "invalid_path"
    assert not (linked.root / "a.txt").exists()
    assert snapshot(linked.kept) == before


def test_a_subagent_is_no_way_round_an_approval(disk: Ground, call_mode: CallMode) -> None:
    before = snapshot([disk.root])
    script = call("task", description="Write", subagent_type="general-purpose"), calls(write("/a.txt"))
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(
            model, checkpointer=InMemorySaver(), interrupt_on={"write_file": True}, **disk.options
        )
        asked = call_mode.invoke(agent, {"messages": "Go"}, THREAD)

    assert asked["__interrupt__"][0].value["action_requests"][0]["name"] == "write_file"
    assert snapshot([disk.root]) == before


WAITS = [FilesystemPermission(["read", "write"], ["/secrets/", "/secrets/**"], "interrupt")]
MIXED = [FilesystemPermission(["read", "write"], ["/secrets/.env"], "deny"), *WAITS]


def paused(made: Ground, call_mode: CallMode, turn: Any) -> tuple[Any, Any, Any]:
    """Run one turn until it waits; return the agent, what it asks and a snapshot of what is kept."""
    before = snapshot(made.kept)
    agent = create_deep_agent(ScriptedModel(turn, "Done."), checkpointer=InMemorySaver(), **made.options)
    result = call_mode.invoke(agent, {"messages": "Go", **made.given}, THREAD)
    assert CANARY not in repr(result["messages"])
    return agent, result.get("__interrupt__"), before


def titled(*tries: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {" ".join([tool, *arguments.values()]): (tool, arguments) for tool, arguments in tries}


WAITING = titled(
    ("read_file", {"file_path": "/secrets/plan.txt"}),
    ("read_file", {"file_path": "/secrets/.hidden"}),
    ("read_file", {"file_path": "//secrets/./plan.txt"}),
    ("read_file", {"file_path": "/open/to-secrets/plan.txt"}),
    ("write_file", {"file_path": "/secrets/new.txt", "content": "x"}),
    ("edit_file", {"file_path": "\\secrets\\plan.txt", "old_string": "one", "new_string": "two"}),
    ("delete", {"file_path": "/secrets"}),
    ("ls", {"path": "/secrets"}),
    ("grep", {"pattern": HINT, "path": "/secrets", "output_mode": "content"}),
    ("glob", {"pattern": "*", "path": "/secrets"}),
)


@in_turn("each", WAITING)
def test_what_waits_for_a_person_does_not_happen_before(
    tmp_path: Path, call_mode: CallMode, each: Any
) -> None:
    made = ground("disk", tmp_path / "real", WAITS)
    (made.root / "secrets" / ".hidden").write_text(CANARY)
    (made.root / "open" / "to-secrets").symlink_to("../secrets")
    agent, asked, before = paused(made, call_mode, calls(each))
    assert asked is not None
    result = call_mode.invoke(agent, Command(resume={"decisions": [REJECT]}), THREAD)

    assert snapshot(made.kept) == before
    assert CANARY not in repr(result["messages"])


WIDE = titled(
    ("grep", {"pattern": HINT, "output_mode": "content"}),
    ("glob", {"pattern": "**/*.txt"}),
    ("glob", {"pattern": "/secrets/*"}),
    ("grep", {"pattern": HINT, "glob": "secrets/**", "output_mode": "content"}),
    ("ls", {"path": "/open"}),
)


@in_turn("each", WIDE)
def test_a_wide_search_shows_nothing_that_waits(tmp_path: Path, call_mode: CallMode, each: Any) -> None:
    made = ground("disk", tmp_path / "real", WAITS)
    agent, asked, _ = paused(made, call_mode, calls(each))
    if asked:
        call_mode.invoke(agent, Command(resume={"decisions": [REJECT]}), THREAD)

    assert CANARY not in repr(agent.get_state(THREAD).values)


ELSEWHERE = {
    "to what is denied": "/secrets/.env",
    "to what is denied, spelled otherwise": "//secrets//.env",
    "to what is denied, by a link": "/open/to-env",
}


@in_turn("path", ELSEWHERE)
@pytest.mark.parametrize("name", ["read_file", "write_file"])
def test_an_approval_edited_to_what_is_denied_is_refused(
    tmp_path: Path, call_mode: CallMode, path: str, name: str
) -> None:
    made = ground("disk", tmp_path / "real", MIXED)
    (made.root / "open" / "to-env").symlink_to("../secrets/.env")
    arguments = {"file_path": path} | ({"content": "x"} if name == "write_file" else {})
    first = {**arguments, "file_path": "/secrets/new.txt"}
    agent, asked, before = paused(made, call_mode, calls((name, first)))
    decision = {"type": "edit", "edited_action": {"name": name, "args": arguments}}
    result = call_mode.invoke(agent, Command(resume={"decisions": [decision]}), THREAD)
    (answer,) = [message for message in result["messages"] if message.type == "tool"]

    assert asked is not None
    assert answer.additional_kwargs["error_code"] == "permission_denied"
    assert snapshot(made.kept) == before
    assert CANARY not in repr(result["messages"])


def test_approving_one_read_opens_no_other(tmp_path: Path, call_mode: CallMode) -> None:
    made = ground("disk", tmp_path / "real", WAITS)
    (made.root / "secrets" / "harmless.txt").write_text("harmless")
    both = calls(
        ("read_file", {"file_path": "/secrets/harmless.txt"}),
        ("read_file", {"file_path": "/secrets/plan.txt"}),
    )
    agent, asked, _ = paused(made, call_mode, both)
    assert len(asked[0].value["action_requests"]) == 2
    result = call_mode.invoke(agent, Command(resume={"decisions": [APPROVE, REJECT]}), THREAD)

    assert "harmless" in repr(result["messages"])
    assert CANARY not in repr(result["messages"])


def test_a_link_that_turns_after_the_approval_is_refused(tmp_path: Path, call_mode: CallMode) -> None:
    made = ground("disk", tmp_path / "real", WAITS)
    (made.root / "secrets" / "harmless.txt").write_text("harmless")
    link = made.root / "open" / "link"
    link.symlink_to("../secrets/harmless.txt")
    agent, asked, _ = paused(made, call_mode, calls(("read_file", {"file_path": "/open/link"})))
    assert asked is not None
    link.unlink()
    link.symlink_to("../secrets/plan.txt")
    result = call_mode.invoke(agent, Command(resume={"decisions": [APPROVE]}), THREAD)

    assert CANARY not in repr(result["messages"])


OWN_APPROVALS: dict[str, dict[str, Any]] = {
    "for another tool": {"interrupt_on": {"write_file": True}},
    "that never asks": {
        "interrupt_on": {"read_file": {"allowed_decisions": ["approve"], "when": lambda request: False}}
    },
}


@pytest.mark.parametrize("own", OWN_APPROVALS.values(), ids=list(OWN_APPROVALS))
def test_a_callers_own_approval_does_not_drop_a_rule(
    tmp_path: Path, call_mode: CallMode, own: dict[str, Any]
) -> None:
    made = ground("disk", tmp_path / "real", MIXED)
    made.options |= own
    turn = calls(*(("read_file", {"file_path": path}) for path in ("/secrets/plan.txt", "/secrets/.env")))
    agent, asked, _ = paused(made, call_mode, turn)
    if asked:
        decisions = {"decisions": [{"type": "reject", "message": "no"}]}
        with suppress(ValueError):
            call_mode.invoke(agent, Command(resume=decisions), THREAD)

    assert CANARY not in repr(agent.get_state(THREAD).values)


def test_an_approval_middleware_that_would_drop_a_rule_is_refused(tmp_path: Path) -> None:
    made = ground("disk", tmp_path / "real", MIXED)
    own = HumanInTheLoopMiddleware({"write_file": True}, interrupt_mode="per_call")

    with pytest.raises(StackError, match="would drop them"):
        create_deep_agent(ScriptedModel(), middleware=[own], **made.options)


def test_an_approval_middleware_of_the_callers_own_asks_for_the_rules_too(
    tmp_path: Path, call_mode: CallMode
) -> None:
    made = ground("disk", tmp_path / "real", MIXED)
    own = HumanInTheLoopMiddleware({"execute": True})
    before = snapshot(made.kept)
    agent = create_deep_agent(
        ScriptedModel(calls(("delete", {"file_path": "/secrets/plan.txt"}))),
        middleware=[own],
        checkpointer=InMemorySaver(),
        **made.options,
    )

    assert call_mode.invoke(agent, {"messages": "Go", **made.given}, THREAD)["__interrupt__"]
    assert snapshot(made.kept) == before


def test_a_remembered_approval_opens_no_other_place(disk: Ground, call_mode: CallMode) -> None:
    rule: Any = {"allowed_decisions": ["approve"], "remember": True}
    ways = [
        "/notes/../x",
        "/notes/./../x",
        "/notes",
        "/notes-x",
        "//notesx",
        "notes\\..\\x",
        "/Notes2/x",
        "/x/notes/y",
    ]
    like = {**APPROVE, "remember": {"file_path": "/notes/**", "content": "**"}}
    with ScriptedModel(calls(write("/notes/a")), calls(*map(write, ways))) as model:
        agent = create_deep_agent(
            model, checkpointer=InMemorySaver(), interrupt_on={"write_file": rule}, **disk.options
        )
        call_mode.invoke(agent, {"messages": "Go"}, THREAD)
        asked = call_mode.invoke(agent, Command(resume={"decisions": [like]}), THREAD)["__interrupt__"][
            0
        ].value

    assert [each["args"]["file_path"] for each in asked["action_requests"]] == ways
