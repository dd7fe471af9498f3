from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from deepagents_local.seen import (
    complete_edit,
    edit_forms,
    find_shown_lines,
    find_small_files,
    write_forms,
)
from deepagents_local.signatures import Call
from tests.local.engines import edit_file, write_file
from tests.local.test_habits import step

WRITE = convert_to_openai_tool(write_file)
EDIT = convert_to_openai_tool(edit_file)
PAGE = (
    "     1\tdef fetch(key):\n     2\t\n     3\tprint(fetch(1))\n"
    + "[Lines 1-3 of 9. 6 lines remain; next offset 3.]"
)


def test_lines_come_from_reading_without_their_numbers() -> None:
    assert find_shown_lines(step("read_file", PAGE, file_path="/a.py")) == {
        "/a.py": ["def fetch(key):", "print(fetch(1))"]
    }


def test_lines_come_from_searching_too() -> None:
    found = "/a.ini:\n  3: port = 1\n/b.ini:\n  1: port = 2\n  9: port = 3"

    assert find_shown_lines(step("grep", found, pattern="port")) == {
        "/a.ini": ["port = 1"],
        "/b.ini": ["port = 2", "port = 3"],
    }


def test_pages_add_up_and_changes_are_kept_up_with() -> None:
    messages = [
        *step("read_file", "     1\tone", file_path="/a"),
        *step("read_file", "     2\ttwo", file_path="/a", offset=1),
        *step("edit_file", "done", file_path="/a", old_string="two", new_string="three\nfour"),
        *step("write_file", "done", file_path="/b", content="new\n"),
    ]

    assert find_shown_lines(messages) == {"/a": ["one", "three", "four"], "/b": ["new"]}


def test_failures_show_nothing() -> None:
    failed = step("edit_file", "no match", "error", file_path="/a", old_string="one", new_string="two")

    assert find_shown_lines([*step("read_file", "     1\tone", file_path="/a"), *failed]) == {"/a": ["one"]}
    assert find_shown_lines(step("read_file", "     1\tone", "error", file_path="/a")) == {}


def test_an_edit_takes_a_shown_line_or_a_word_that_is_there_more_than_once() -> None:
    read = step("read_file", PAGE, file_path="/a.py")
    line, word = edit_forms(EDIT, [HumanMessage("Rename fetch to load."), *read])

    assert line["properties"]["old_string"] == {"enum": ["def fetch(key):", "print(fetch(1))"]}
    assert word["properties"]["old_string"] == {"enum": ["fetch"]}
    assert word["properties"]["replace_all"] == {"const": True}
    assert edit_forms(EDIT, [HumanMessage("Say so."), *read]) == [line]


def test_a_line_replaced_by_nothing_goes_with_its_line_break() -> None:
    files = {"/a": ["one", "two"]}

    def removed(line: str) -> Any:
        args = {"file_path": "/a", "old_string": line, "new_string": ""}
        return complete_edit(Call("edit_file", args), files, {}).args["old_string"]

    assert removed("one") == "one\n"
    assert removed("two") == "\ntwo"
    assert removed("elsewhere") == "elsewhere"


def test_a_small_file_that_was_read_whole_is_written_anew() -> None:
    messages = [
        *step("read_file", "     1\tone\n     2\t\n     3\ttwo", file_path="/a"),
        *step("edit_file", "done", file_path="/a", old_string="two", new_string="2"),
        *step("write_file", "done", file_path="/b", content="new\n"),
    ]
    small = find_small_files(messages)
    (form,) = edit_forms(EDIT, messages)

    assert small == {"/a": "one\n\n2", "/b": "new"}
    assert form["properties"] == {"tool": {"const": "edit_file"}, "file_path": {"enum": ["/a", "/b"]}}
    call = complete_edit(Call("edit_file", {"file_path": "/a", "new_string": "1"}), {}, small)
    assert call.args == {"file_path": "/a", "old_string": "one\n\n2", "new_string": "1"}


def test_what_is_long_or_was_read_in_part_or_looks_like_its_own_end_is_edited_by_lines() -> None:
    def small(result: str) -> dict[str, str]:
        return find_small_files(step("read_file", result, file_path="/a"))

    assert small(PAGE) == {}
    assert small("     5\tlast") == {}
    assert small("System reminder: File exists but has empty contents") == {}
    assert small("     1\t```sh\n     2\tls\n     3\t```") == {}
    assert small("\n".join(f"{number:6}\tline" for number in range(1, 22))) == {}


def paths(*messages: Any, ask: str) -> list[str] | None:
    forms = write_forms(WRITE, [HumanMessage(ask), *messages])
    return forms[0]["properties"]["file_path"].get("enum") if forms else []


def test_a_named_file_is_written_after_a_look_that_did_not_find_it() -> None:
    assert paths(ask="Create docs/new.md.") == []
    assert paths(*step("ls", "/old.md", path="/"), ask="Create docs/new.md.") == ["/docs/new.md"]
    missed = step("read_file", "'/docs/new.md' not found", "error", file_path="/docs/new.md")
    assert paths(*missed, ask="Create docs/new.md.") == ["/docs/new.md"]
    read = step("read_file", "     1\tone", file_path="/a.txt")
    assert paths(*read, ask="Copy a.txt to b.txt") == ["/b.txt"]


def test_a_search_without_a_match_proves_nothing_about_a_file() -> None:
    assert paths(*step("grep", "No matches found", pattern="debug"), ask="Set debug in app.ini.") == []


def test_a_file_that_is_there_is_not_overwritten() -> None:
    assert paths(*step("ls", "/app.ini", path="/"), ask="Set debug to false in app.ini.") == []
    assert paths(*step("ls", "/a.txt", path="/"), ask="Copy a.txt to b.txt") == ["/b.txt"]


def test_a_request_that_names_no_file_leaves_the_name_open() -> None:
    assert paths(ask="Write a poem, version 1.3.0 of it") is None
