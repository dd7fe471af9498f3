"""What a model reads of each tool for files but read_file, and what its call leaves behind."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import call
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of, meddling


def test_ls_shows_size_and_time_and_ends_directories_with_a_slash(bench: Bench) -> None:
    bench.place("/sub/b.txt", "b")
    wrote, listed = bench.run(
        call("write_file", file_path="/a.txt", content="x" * 1500), call("ls", path="/")
    )
    first, second = listed.text.split("\n")

    assert wrote.status == "success"
    assert re.fullmatch(r"/a\.txt  1\.5 kB  \d{4}-\d\d-\d\d \d\d:\d\d", first)
    assert second == "/sub/"


@pytest.mark.parametrize(("tool", "arguments"), [("ls", {"path": "/"}), ("glob", {"pattern": "*.rs"})])
def test_nothing_found_is_said(bench: Bench, tool: str, arguments: dict[str, Any]) -> None:
    assert bench.use(tool, **arguments).text == "No files found"


def test_glob_finds_a_bare_name_at_any_depth(bench: Bench) -> None:
    for path in ("/a.py", "/deep/down/b.py", "/c.txt"):
        bench.place(path, "x")

    assert sorted(bench.use("glob", pattern="*.py").text.split("\n")) == ["/a.py", "/deep/down/b.py"]


SEARCHED = {"/a.py": "import os\nx = 1\nprint(x)\n", "/b.md": "x marks it\n"}


@pytest.fixture
def searched(bench: Bench) -> Bench:
    for path, text in SEARCHED.items():
        bench.place(path, text)
    return bench


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"pattern": "x"}, "/a.py\n/b.md"),
        (
            {"pattern": "x", "output_mode": "content"},
            "/a.py:\n  2: x = 1\n  3: print(x)\n/b.md:\n  1: x marks it",
        ),
        ({"pattern": "x", "output_mode": "count"}, "/a.py: 2\n/b.md: 1"),
        (
            {"pattern": "x = 1", "output_mode": "content", "context": 1},
            "/a.py:\n  1- import os\n  2: x = 1\n  3- print(x)",
        ),
        ({"pattern": r"^x\s", "regex": True, "output_mode": "count"}, "/a.py: 1\n/b.md: 1"),
    ],
    ids=["files by default", "lines", "counts", "lines around", "by expression"],
)
def test_grep_shows_what_was_asked_for(searched: Bench, arguments: dict[str, Any], shown: str) -> None:
    assert searched.use("grep", **arguments).text == shown


def test_grep_takes_text_literally_and_hints_at_an_expression(searched: Bench) -> None:
    found = searched.use("grep", pattern="x|os").text

    assert found.startswith("No matches found")
    assert "regex=true" in found


def test_grep_shows_no_more_matches_than_one_call_may(bench: Bench) -> None:
    bench.place("/a.txt", "x\n" * 1_200)

    found = bench.use("grep", pattern="x", output_mode="count", max_count=5_000).text

    assert found.startswith("/a.txt: 1000\n")


def test_grep_says_that_there_is_more_than_its_cap(searched: Bench) -> None:
    found = searched.use("grep", pattern="x", output_mode="content", max_count=1)

    assert found.text.startswith("/a.py:\n  2: x = 1\n\n")
    assert "Only the first match is shown, because of max_count=1: leave it out" in found.text


def test_delete_takes_a_file_and_leaves_its_neighbours(bench: Bench) -> None:
    bench.place("/a.txt", "a")
    bench.place("/a.txt.bak", "b")

    assert bench.use("delete", file_path="/a.txt").text == "Deleted /a.txt"
    assert (bench.content("/a.txt"), bench.content("/a.txt.bak")) == (None, "b")
    assert code_of(bench.use("delete", file_path="/none")) == "file_not_found"


def test_edit_file_replaces_exact_text(bench: Bench) -> None:
    bench.place("/a.txt", "one two\n")
    done = bench.use("edit_file", file_path="/a.txt", old_string="two", new_string="three")

    assert done.text == "Successfully replaced 1 instance(s) of the string in '/a.txt'"
    assert bench.content("/a.txt") == "one three\n"


def test_edit_file_shows_the_nearest_place_after_a_miss(bench: Bench) -> None:
    bench.place("/a.txt", "def total(items):\n    return sum(items)\n")
    refused = bench.use("edit_file", file_path="/a.txt", old_string="def total(item):", new_string="x")

    assert code_of(refused) == "no_match"
    assert "line 1:" in refused.text
    assert "def total(items):" in refused.text


def test_write_file_creates_a_file_with_its_directories(bench: Bench) -> None:
    made = bench.use("write_file", file_path="/a/b/c.txt", content="new\n").text
    assert made.removesuffix(", in the new folder /a") == "Created file /a/b/c.txt"
    assert bench.content("/a/b/c.txt") == "new\n"


def test_write_file_refuses_what_changed_since_it_was_read_until_it_is_read_again(
    tmp_path: Path, call_mode: CallMode
) -> None:
    disk = Bench("disk", tmp_path, call_mode)
    disk.place("/a.txt", "first")
    read = call("read_file", file_path="/a.txt")
    write = call("write_file", file_path="/a.txt", content="mine")
    meddled = meddling(disk, "/a.txt", "theirs!", write)
    _, refused, _, last = disk.run(read, meddled, read.model_copy(), write.model_copy())

    assert code_of(refused) == "stale_version"
    assert "Read it again" in refused.text
    assert last.status == "success"
    assert disk.content("/a.txt") == "mine"


@pytest.mark.parametrize(
    "before",
    [
        call("write_file", file_path="/a/b.txt", content="one"),
        call("delete", file_path="/a"),
    ],
    ids=["a write", "a deletion"],
)
def test_ones_own_change_is_no_surprise(bench: Bench, before: Any) -> None:
    bench.place("/a/b.txt", "old")
    read = call("read_file", file_path="/a/b.txt")
    done = bench.run(read, before, call("write_file", file_path="/a/b.txt", content="new"))

    assert [message.status for message in done] == ["success"] * 3
    assert bench.content("/a/b.txt") == "new"
