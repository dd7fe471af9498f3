"""A person sees what a call would change before it does."""

from __future__ import annotations

import pytest

from deepagents_cli.diffs import text_diff


def test_a_new_file_is_all_new() -> None:
    assert text_diff(None, "x\n", "/b.txt") == ["--- /dev/null", "+++ b/b.txt", "@@ -0,0 +1 @@", "+x"]


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
