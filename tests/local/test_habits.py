from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call
from deepagents_local.habits import Habits, find_forms, offer_tools
from tests.local.engines import FILE_TOOLS

TOOLS = [convert_to_openai_tool(tool) for tool in FILE_TOOLS]
LOOSE = Habits(
    plain_tools={}, fixed={}, look_first=(), edit_shown_lines=False, write_named_files=False, try_again=False,
    stop_repeats=False,
)  # fmt: skip


def step(name: str, result: str, status: Any = "success", **args: Any) -> list[Any]:
    identity = f"{name}{args}{result}"
    call = {"name": name, "args": args, "id": identity}
    return [
        AIMessage("", tool_calls=[call]),
        ToolMessage(result, tool_call_id=identity, name=name, status=status),
    ]


def names(messages: list[Any], habits: Habits | None = None) -> list[str]:
    rules = habits or Habits()
    return [
        form["properties"].get("tool", {"const": "answer"})["const"]
        for form in find_forms(messages, offer_tools(TOOLS, rules), rules)
    ]


ASKED = [HumanMessage("Say hello in the greeting")]
READ = step("read_file", "     1\thello", file_path="/a.txt")


def test_the_first_reply_looks() -> None:
    assert names(ASKED) == ["ls", "read_file", "grep"]


def test_a_new_request_is_looked_at_anew() -> None:
    assert names([*ASKED, *READ, AIMessage("Done"), HumanMessage("Now the other")]) == [
        "ls",
        "read_file",
        "grep",
    ]


def test_after_a_look_all_is_open_and_edits_are_held_to_what_was_shown() -> None:
    assert names([*ASKED, *READ]) == ["ls", "read_file", "write_file", "edit_file", "grep", "answer"]
    assert "edit_file" not in names([*ASKED, *step("ls", "/a.txt", path="/")])


def test_after_a_failure_there_is_no_answer() -> None:
    failed = step("read_file", "not found", "error", file_path="/b.txt")

    assert "answer" not in names([*ASKED, *failed])
    assert "answer" in names([*ASKED, *failed, *READ])


@pytest.mark.parametrize("search", ["grep", "glob"])
def test_a_search_that_finds_nothing_is_no_answer(search: str) -> None:
    with ScriptedModel(call(search, pattern="hi"), "None.") as model:
        result = create_deep_agent(model).invoke({"messages": ASKED})["messages"][-2].text

    assert "answer" not in names([*ASKED, *step(search, result, pattern="hi")])


def test_a_search_that_finds_something_may_be_an_answer() -> None:
    assert "answer" in names([*ASKED, *step("grep", "/a.txt:\n  1: hi", pattern="hi")])


def test_a_question_of_the_harness_is_no_new_request() -> None:
    question = HumanMessage("You stopped.", additional_kwargs={"lc_source": "finish_check"})

    assert "edit_file" in names([*ASKED, *READ, AIMessage("Done"), question])


def test_a_repeated_call_is_not_offered_a_third_time() -> None:
    assert names([*ASKED, *READ, *READ]) == ["ls", "write_file", "edit_file", "grep", "answer"]


def test_after_two_repeats_only_the_answer_is_left() -> None:
    assert names([*ASKED, *READ, *READ, *READ]) == ["answer"]


def test_without_habits_everything_is_allowed() -> None:
    every = ["ls", "read_file", "write_file", "edit_file", "grep", "answer"]

    assert names(ASKED, LOOSE) == every
    assert names([*ASKED, *READ, *READ, *READ], LOOSE) == every


def test_tools_without_those_names_are_left_alone() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    tools = [convert_to_openai_tool(add)]
    forms = find_forms([HumanMessage("1+1?")], offer_tools(tools, Habits()), Habits())

    assert [form["required"] for form in forms] == [["tool", "a", "b"], ["final_answer"]]


def test_optional_arguments_are_kept_from_it_and_some_are_fixed() -> None:
    ls, read, _, edit, grep = offer_tools(TOOLS, Habits())

    assert ls == TOOLS[0]
    assert list(read["function"]["parameters"]["properties"]) == ["file_path", "offset"]
    assert list(edit["function"]["parameters"]["properties"]) == ["file_path", "old_string", "new_string"]
    assert grep["function"]["parameters"]["properties"]["output_mode"] == {"const": "content"}
