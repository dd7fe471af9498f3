"""ls: one entry a line, with size and time."""

from __future__ import annotations

import re

from deepagents.testing import call
from tests.tools.bench import Bench, code_of


def test_files_show_size_and_time_and_directories_end_in_a_slash(bench: Bench) -> None:
    bench.place("/a.txt", "x" * 1500)
    bench.place("/sub/b.txt", "b")
    bench.run()
    first, second = bench.use("ls", path="/").text.split("\n")

    assert re.match(r"/a\.txt  1\.5 kB", first)
    assert second == "/sub/"


def test_time_is_shown_where_it_is_known(bench: Bench) -> None:
    made, listed = bench.run(call("write_file", file_path="/a.txt", content="a"), call("ls", path="/"))

    assert made.status == "success"
    assert re.fullmatch(r"/a\.txt  1 B  \d{4}-\d\d-\d\d \d\d:\d\d", listed.text)


def test_an_empty_directory_says_so(bench: Bench) -> None:
    assert bench.use("ls", path="/").text == "No files found"


def test_a_way_out_is_refused(bench: Bench) -> None:
    refused = bench.use("ls", path="/../etc")

    assert (refused.status, code_of(refused)) == ("error", "invalid_path")
    assert "traversal" in refused.text


def test_a_file_is_no_directory(bench: Bench) -> None:
    bench.place("/a.txt", "a")

    assert code_of(bench.use("ls", path="/a.txt")) == "not_a_directory"
