"""What two requests share from their beginning is measured as providers cache it, and shown where it ends."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage

from deepagents import create_deep_agent
from deepagents.testing import (
    Asked,
    PrefixBreak,
    WindowedModel,
    assert_prefix_kept,
    call,
    prefix_breaks,
    shared_prefix,
)
from tests.conftest import CallMode

HISTORY: list[BaseMessage] = [
    SystemMessage("Be kind."),
    HumanMessage("Go"),
    AIMessage("", tool_calls=[ToolCall(name="ls", args={"path": "/"}, id="1")]),
    ToolMessage("a.txt", tool_call_id="1"),
]


def offered(*names: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name}} for name in names]


def test_a_request_that_goes_on_keeps_all_of_the_one_before() -> None:
    before = Asked(HISTORY, offered("ls"))
    shared = shared_prefix(before, Asked([*HISTORY, AIMessage("Done."), HumanMessage("More")], offered("ls")))

    assert shared.whole
    assert (shared.parts, shared.messages, shared.lost) == (5, 3, 0)
    assert shared.characters > len("Be kind.Goa.txt")


def test_what_changes_early_costs_all_that_stands_behind_it() -> None:
    edited = [HISTORY[0], HumanMessage("Stop"), *HISTORY[2:]]
    shared = shared_prefix(Asked(HISTORY), Asked(edited))

    assert (shared.parts, shared.messages) == (1, 0)
    assert shared.lost > len("a.txt")
    assert shared.difference is not None
    assert "message 1 (human) differs" in shared.difference
    assert "Go" in shared.difference
    assert "Stop" in shared.difference


@pytest.mark.parametrize(
    ("later", "place"),
    [
        (Asked(HISTORY, offered("ls", "grep")), "system, now tool, differs"),
        (Asked(HISTORY, offered("grep")), "tool differs"),
        (Asked([SystemMessage("Be quick."), *HISTORY[1:]], offered("ls")), "system differs"),
        (Asked(HISTORY[:-1], offered("ls")), "message 3 (tool) is gone"),
        (
            Asked([*HISTORY[:-1], ToolMessage("a.txt", tool_call_id="1", status="error")], offered("ls")),
            "message 3 (tool) differs",
        ),
    ],
)
def test_tools_come_first_then_the_system_prompt_then_messages(later: Asked, place: str) -> None:
    shared = shared_prefix(Asked(HISTORY, offered("ls")), later)

    assert shared.difference is not None
    assert shared.difference.startswith(place)


def test_marks_ids_and_the_form_of_content_do_not_count() -> None:
    blocks: list[Any] = [{"type": "text", "text": "Go", "cache_control": {"type": "ephemeral"}}]
    marked = [HISTORY[0], HumanMessage(blocks, id="7", additional_kwargs={"note": 1}), *HISTORY[2:]]

    assert shared_prefix(Asked(HISTORY), Asked(marked)).whole


def test_a_block_added_to_the_system_prompt_keeps_the_blocks_before_it() -> None:
    longer: list[Any] = [{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Today is Monday."}]
    shared = shared_prefix(Asked(HISTORY), Asked([SystemMessage(longer), *HISTORY[1:]]))

    assert (shared.parts, shared.messages) == (1, 0)


def test_breaks_are_found_and_excused_by_the_caller() -> None:
    requests = [Asked(HISTORY), Asked([*HISTORY, HumanMessage("More")]), Asked([HumanMessage("Anew")])]
    (found,) = prefix_breaks(requests)

    assert found.number == 2
    assert found.before is requests[1]
    assert prefix_breaks(requests, allowed=lambda each: each.number == 2) == []
    assert_prefix_kept(requests[:2])
    with pytest.raises(AssertionError, match=r"request 2 shares 0 .* loses \d+: system"):
        assert_prefix_kept(requests)


def test_the_requests_of_an_agent_keep_their_prefix(call_mode: CallMode) -> None:
    steps = [call("write_file", file_path=f"/{number}.txt", content="x" * 200) for number in range(5)]
    with WindowedModel(*steps, "Done.") as model:
        call_mode.invoke(create_deep_agent(model), {"messages": "Write five files."})

    assert_prefix_kept(model.turns)
    assert len(model.turns) == 6


def test_a_prompt_that_changes_with_each_request_is_caught() -> None:
    requests = [Asked([SystemMessage(f"It is {hour} o'clock."), *HISTORY[1:]]) for hour in (8, 9)]
    excused: list[PrefixBreak] = prefix_breaks(requests)

    assert "It is 8" in str(excused[0])
    assert "It is 9" in str(excused[0])
