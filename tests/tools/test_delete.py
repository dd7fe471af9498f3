"""delete: a file, or a directory with all in it, and never the root."""

from __future__ import annotations

from tests.tools.bench import Bench, code_of


def test_a_file_goes_and_its_neighbours_stay(bench: Bench) -> None:
    bench.place("/a.txt", "a")
    bench.place("/a.txt.bak", "b")

    assert bench.use("delete", file_path="/a.txt").text == "Deleted /a.txt"
    assert (bench.content("/a.txt"), bench.content("/a.txt.bak")) == (None, "b")


def test_a_directory_goes_with_all_in_it(bench: Bench) -> None:
    bench.place("/a/b/c.txt", "c")
    bench.place("/ab.txt", "stays")
    bench.use("delete", file_path="/a")

    assert (bench.content("/a/b/c.txt"), bench.content("/ab.txt")) == (None, "stays")


def test_the_root_stays(bench: Bench) -> None:
    bench.place("/a.txt", "a")

    assert bench.use("delete", file_path="/").status == "error"
    assert bench.content("/a.txt") == "a"


def test_nothing_there_is_an_error(bench: Bench) -> None:
    assert code_of(bench.use("delete", file_path="/none")) == "file_not_found"
