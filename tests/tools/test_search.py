"""Lists of files are sorted and bounded, end with a whole line, and count what they leave out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from deepagents.testing import call
from tests.tools.bench import Bench

SEARCHES: dict[str, dict[str, Any]] = {
    "ls": {"path": "/d"},
    "glob": {"pattern": "*.txt"},
    "grep": {"pattern": "needle"},
}
MANY = [f"/d/{'n' * 150}{number:04}.txt" for number in range(900)]


def fill(bench: Bench) -> None:
    for path in reversed(MANY):
        bench.place(path, "needle")


def searched(bench: Bench, **options: Any) -> list[str]:
    """List all files with each tool."""
    return [each.text for each in bench.run(*(call(tool, **SEARCHES[tool]) for tool in SEARCHES), **options)]


def test_a_large_listing_shows_whole_lines_and_counts_the_rest(bench: Bench) -> None:
    fill(bench)
    for text in searched(bench):
        *lines, blank, note = text.split("\n")

        assert len("\n".join(lines)) <= 80_000
        assert [line.split("  ")[0] for line in lines] == MANY[: len(lines)]
        assert blank == ""
        assert note.startswith(f"{len(MANY) - len(lines):,} more")


@pytest.mark.parametrize(("limit", "most"), [(500, 2000), (None, 80_000)])
def test_a_listing_keeps_to_the_limit_of_results(bench: Bench, limit: int | None, most: int) -> None:
    fill(bench)
    for text in searched(bench, tool_token_limit_before_evict=limit):
        assert most // 2 < len(text) <= most + 200
        assert re.search(r"\d more", text)


def test_a_long_match_is_cut_where_it_says_so_and_the_next_file_still_shown(bench: Bench) -> None:
    bench.place("/a.txt", "needle" + "x" * 200_000)
    bench.place("/b.txt", "needle")
    found = bench.use("grep", pattern="needle", output_mode="content").text

    assert len(found) < 80_000
    assert "characters cut]" in found
    assert "/b.txt:\n  1: needle" in found


@pytest.mark.parametrize("odd", ["\n", "\x1b[2J", "\u2028", "\u202e", "\x85"])
def test_a_name_cannot_forge_an_entry(bench: Bench, odd: str) -> None:
    bench.place("/d/a.txt", "needle")
    bench.place(f"/d/nl{odd}secrets.txt", "needle")
    for text in searched(bench):
        lines = text.splitlines()

        assert lines[0].startswith("/d/a.txt")
        assert len(lines) <= 2
        assert odd not in "".join(lines)


def test_a_file_that_is_searched_by_its_name_says_how_to_see_its_lines(bench: Bench) -> None:
    bench.place("/a.txt", "needle\nhay\nneedle")
    bench.place("/b.txt", "hay")

    found = bench.use("grep", pattern="needle", path="/a.txt").text
    assert found == '/a.txt\n\nLines of it that match: 2. output_mode="content" shows them.'
    assert bench.use("grep", pattern="needle", path="/").text == "/a.txt"
    assert "output_mode" not in bench.use("grep", pattern="needle", path="/a.txt", output_mode="count").text
