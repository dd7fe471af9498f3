"""A person sees what a call would change before it does."""

from __future__ import annotations

from typing import Any

import pytest

from deepagents_cli.diffs import propose_diff, text_diff

FILES = {"/a.txt": "one\ntwo\ntwo\n"}


def diff_of(name: str, **args: object) -> Any:
    return propose_diff(name, args, FILES.get)


def test_a_new_file_is_all_new() -> None:
    assert diff_of("write_file", file_path="/b.txt", content="x\n") == [
        "--- /dev/null",
        "+++ b/b.txt",
        "@@ -0,0 +1 @@",
        "+x",
    ]


def test_a_replaced_file_shows_what_differs() -> None:
    lines = diff_of("write_file", file_path="/a.txt", content="one\n2\n")

    assert lines[:2] == ["--- a/a.txt", "+++ b/a.txt"]
    assert lines[3:] == [" one", "-two", "-two", "+2"]


def test_an_edit_shows_the_first_place_or_all() -> None:
    change = {"file_path": "/a.txt", "old_string": "two", "new_string": "2"}

    assert diff_of("edit_file", **change).count("+2") == 1
    assert diff_of("edit_file", **change, replace_all=True).count("+2") == 2


def test_an_edit_that_will_miss_shows_what_was_meant() -> None:
    lines = diff_of("edit_file", file_path="/a.txt", old_string="three", new_string="3")

    assert lines[-2:] == ["-three", "+3"]


def test_other_calls_have_none() -> None:
    assert diff_of("execute", command="rm -r /") is None
    assert diff_of("write_file", file_path=3) is None


def test_a_deleted_file_is_all_gone() -> None:
    assert text_diff("x\n", None, "/a")[1:] == ["+++ /dev/null", "@@ -1 +0,0 @@", "-x"]


def test_a_name_cannot_look_like_changes() -> None:
    assert text_diff(None, "x\n", "/a\n+y")[1] == "+++ b/a\\n+y"


@pytest.mark.parametrize(
    "mark", ["\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029", "\r"], ids=ascii
)
def test_only_a_newline_ends_a_line(mark: str) -> None:
    assert text_diff(f"# a{mark}boom()\n", "# a\nboom()\n", "/x")[3:] == [
        f"-# a{mark}boom()",
        "+# a",
        "+boom()",
    ]


def test_a_final_newline_is_a_change() -> None:
    assert text_diff("a\nb\n", "a\nb", "/x")[3:] == [" a", "-b", "+b", "\\ No newline at end of file"]
    assert text_diff("a", "a\n", "/x")[3:] == ["-a", "\\ No newline at end of file", "+a"]


def test_ends_of_lines_as_another_system_has_them_are_no_change() -> None:
    assert text_diff("a\r\nb\r\n", "a\nb\n", "/x") == []
