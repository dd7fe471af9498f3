"""write_file: creates, replaces, and never silently overwrites what changed since it was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.testing import call
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of, meddling


@pytest.fixture
def disk(tmp_path: Path, call_mode: CallMode) -> Bench:
    return Bench("disk", tmp_path, call_mode)


def test_a_file_is_created_with_its_directories(bench: Bench) -> None:
    assert bench.use("write_file", file_path="/a/b/c.txt", content="new\n").text == "Updated file /a/b/c.txt"
    assert bench.content("/a/b/c.txt") == "new\n"


def test_a_file_is_replaced(bench: Bench) -> None:
    bench.place("/a.txt", "old")
    bench.use("write_file", file_path="/a.txt", content="new")

    assert bench.content("/a.txt") == "new"


def test_a_file_that_changed_since_it_was_read_is_left_alone(disk: Bench) -> None:
    disk.place("/a.txt", "first")
    write = call("write_file", file_path="/a.txt", content="mine")
    _, refused = disk.run(call("read_file", file_path="/a.txt"), meddling(disk, "/a.txt", "theirs!", write))

    assert code_of(refused) == "stale_version"
    assert "Read it again" in refused.text
    assert disk.content("/a.txt") == "theirs!"


def test_reading_again_makes_the_write_good(disk: Bench) -> None:
    disk.place("/a.txt", "first")
    read, write = (
        call("read_file", file_path="/a.txt"),
        call("write_file", file_path="/a.txt", content="mine"),
    )
    last = disk.run(read, meddling(disk, "/a.txt", "theirs!", write), read.model_copy(), write.model_copy())[
        -1
    ]

    assert last.status == "success"
    assert disk.content("/a.txt") == "mine"


def test_ones_own_write_is_no_surprise(bench: Bench) -> None:
    first, second = (call("write_file", file_path="/a.txt", content=content) for content in ("one", "two"))
    done = bench.run(first, second)

    assert [message.status for message in done] == ["success", "success"]
    assert bench.content("/a.txt") == "two"


def test_a_file_deleted_and_written_anew_is_no_surprise(bench: Bench) -> None:
    bench.place("/a/b.txt", "old")
    done = bench.run(
        call("read_file", file_path="/a/b.txt"),
        call("delete", file_path="/a"),
        call("write_file", file_path="/a/b.txt", content="new"),
    )

    assert [message.status for message in done] == ["success"] * 3
    assert bench.content("/a/b.txt") == "new"


def test_a_write_to_the_root_is_refused(bench: Bench) -> None:
    refused = bench.use("write_file", file_path="/", content="x")

    assert refused.status == "error"
    assert code_of(refused) in {"invalid_path", "is_directory"}
