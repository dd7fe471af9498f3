"""edit_file: exact text, or a result that says where the nearest is."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.testing import call
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of, meddling


@pytest.fixture
def disk(tmp_path: Path, call_mode: CallMode) -> Bench:
    return Bench("disk", tmp_path, call_mode)


def edit(old: str, new: str, **more: object) -> dict[str, object]:
    return {"file_path": "/a.txt", "old_string": old, "new_string": new, **more}


def test_exact_text_is_replaced(bench: Bench) -> None:
    bench.place("/a.txt", "one two\n")
    done = bench.use("edit_file", **edit("two", "three"))

    assert done.text == "Successfully replaced 1 instance(s) of the string in '/a.txt'"
    assert bench.content("/a.txt") == "one three\n"


def test_every_place_is_replaced_when_asked(bench: Bench) -> None:
    bench.place("/a.txt", "x y x")
    bench.use("edit_file", **edit("x", "z", replace_all=True))

    assert bench.content("/a.txt") == "z y z"


def test_several_places_need_a_word_for_it(bench: Bench) -> None:
    bench.place("/a.txt", "x y x")
    refused = bench.use("edit_file", **edit("x", "z"))

    assert code_of(refused) == "ambiguous_match"
    assert "appears 2 times" in refused.text
    assert bench.content("/a.txt") == "x y x"


def test_a_miss_shows_the_nearest_place(bench: Bench) -> None:
    bench.place("/a.txt", "def total(items):\n    return sum(items)\n")
    refused = bench.use("edit_file", **edit("def total(item):", "def total(them):"))

    assert code_of(refused) == "no_match"
    assert "def total(items):" in refused.text
    assert "1" in refused.text


def test_a_miss_by_whitespace_is_said_to_be_one(bench: Bench) -> None:
    bench.place("/a.txt", "\tindented\n")
    refused = bench.use("edit_file", **edit("    indented", "x"))

    assert code_of(refused) == "no_match"
    assert "whitespace" in refused.text.lower()


def test_line_endings_are_kept(bench: Bench) -> None:
    bench.place("/a.txt", "one\r\ntwo\r\n")
    bench.use("edit_file", **edit("one\ntwo", "1\n2"))

    assert bench.content("/a.txt") == "1\r\n2\r\n"


def test_a_stale_edit_is_refused(disk: Bench) -> None:
    disk.place("/a.txt", "one two")
    stale = meddling(disk, "/a.txt", "one two three", call("edit_file", **edit("two", "2")))
    _, refused = disk.run(call("read_file", file_path="/a.txt"), stale)

    assert code_of(refused) == "stale_version"
    assert disk.content("/a.txt") == "one two three"


def test_a_missing_file_is_an_error(bench: Bench) -> None:
    assert code_of(bench.use("edit_file", **edit("a", "b"))) == "file_not_found"
