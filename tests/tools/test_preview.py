"""What a call would make of a file is known before it is made."""

from __future__ import annotations

from deepagents.tools import specs_by_name
from deepagents.tools.preview import preview_change

EDIT = specs_by_name()["edit_file"]


def edit(before: bytes | None, old: str, new: str = "new") -> tuple[bytes | None, str | None]:
    path = "/a/b.txt"
    given = {"file_path": path, "old_string": old, "new_string": new}
    found = preview_change(EDIT, given, {path: before})
    return found.after.get(path), found.failure


def test_a_change_is_shown_as_the_tool_makes_it() -> None:
    assert edit(b"old\r\nend", "old") == (b"new\r\nend", None)


def test_a_failure_is_told_in_the_words_of_the_tool() -> None:
    for before, code in ((b"x", "no_match"), (b"old old", "ambiguous_match"), (None, "file_not_found")):
        after, failure = edit(before, "old")
        assert after is None
        assert failure is not None
        assert failure.endswith(f"[{code}]")


def test_an_argument_that_the_tool_does_not_have_is_left_out_as_in_a_call() -> None:
    given = {"file_path": "/a.txt", "old_string": "old", "new_string": "new", "mode": "w"}

    assert preview_change(EDIT, given, {"/a.txt": b"old"}).after == {"/a.txt": b"new"}


def test_an_argument_of_another_kind_is_named() -> None:
    failure = preview_change(EDIT, {"file_path": "/a.txt", "old_string": 1}, {"/a.txt": b"old"}).failure

    assert failure is not None
    assert "old_string: Input should be a valid string" in failure
    assert failure.endswith("[invalid_argument]")


def test_a_path_that_cannot_be_is_a_failure() -> None:
    assert preview_change(EDIT, {"file_path": "\0"}, {}).failure


def test_a_change_of_several_files_is_shown_whole() -> None:
    patch = "*** Begin Patch\n*** Delete File: a\n*** Update File: b\n*** Move to: c\n-x\n+y\n*** End Patch"
    found = preview_change(specs_by_name()["apply_patch"], {"patch": patch}, {"/a": b"a\n", "/b": b"x\n"})

    assert found.after == {"/a": None, "/b": None, "/c": b"y\n"}


def test_an_edit_that_differs_in_looks_is_shown_as_it_will_be_made() -> None:
    assert edit(b"if a:\n    go()\n", "go()  ", "stop()") == (b"if a:\n    stop()\n", None)
