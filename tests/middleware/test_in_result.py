"""Only the messages inside a tool's result are changed, in whatever form they come."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Overwrite

from deepagents._async import run
from deepagents.middleware.filesystem.offload import map_messages

MESSAGE = ToolMessage("quiet", tool_call_id="1")
LOUD = ToolMessage("QUIET", tool_call_id="1")
RESET = RemoveMessage(REMOVE_ALL_MESSAGES)
PERSON = HumanMessage("quiet")


async def loud(message: Any) -> Any:
    is_short = isinstance(message, ToolMessage) and message.content == "?"
    return LOUD if message is MESSAGE or is_short else message


def changed(result: Any) -> Any:
    return run(map_messages(result, loud))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"messages": [MESSAGE]}, {"messages": [LOUD]}),
        ({"messages": MESSAGE, "todos": []}, {"messages": LOUD, "todos": []}),
        ({"messages": [RESET, PERSON, MESSAGE, "hi"]}, {"messages": [RESET, PERSON, LOUD, "hi"]}),
        ({"messages": Overwrite([MESSAGE])}, {"messages": Overwrite([LOUD])}),
        ([("todos", []), ("messages", [MESSAGE])], [("todos", []), ("messages", [LOUD])]),
        ((("messages", Overwrite([MESSAGE])),), [("messages", Overwrite([LOUD]))]),
        ({"messages": []}, {"messages": []}),
        ({"todos": []}, {"todos": []}),
        (None, None),
        ({"messages": [{"role": "tool", "content": "?", "tool_call_id": "1"}]}, {"messages": [LOUD]}),
        ({"messages": {"role": "tool", "content": "?", "tool_call_id": "1"}}, {"messages": LOUD}),
        ({"messages": [{"role": "user", "content": ""}]}, {"messages": [{"role": "user", "content": ""}]}),
        ({"messages": [{"odd": 1}]}, {"messages": [{"odd": 1}]}),
    ],
)  # fmt: skip
def test_each_form_of_an_update_keeps_its_form(given: Any, expected: Any) -> None:
    assert changed(Command(update=given)).update == expected


def test_all_else_of_a_command_is_kept() -> None:
    command = Command(graph=Command.PARENT, update={"messages": [MESSAGE]}, resume={"a": 1}, goto="there")
    done = changed(command)

    assert (done.graph, done.resume, done.goto) == (Command.PARENT, {"a": 1}, "there")
    assert done.update == {"messages": [LOUD]}
    assert command.update == {"messages": [MESSAGE]}


def test_what_is_no_command_is_changed_or_left_alone() -> None:
    assert changed(MESSAGE) is LOUD
    assert changed("text") == "text"


def test_a_tool_may_return_several_commands_and_messages() -> None:
    done = changed([Command(update={"messages": [MESSAGE]}), MESSAGE, "text"])

    assert done == [Command(update={"messages": [LOUD]}), LOUD, "text"]
