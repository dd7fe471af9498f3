"""grep: text in files, in three modes, literally or by expression."""

from __future__ import annotations

import pytest

from deepagents.testing import call
from tests.tools.bench import Bench, code_of


@pytest.fixture(autouse=True)
def _files(bench: Bench) -> None:
    bench.place("/a.py", "import os\nx = 1\nprint(x)\n")
    bench.place("/b.md", "x marks it\n")


def test_files_are_the_default(bench: Bench) -> None:
    assert bench.use("grep", pattern="x").text == "/a.py\n/b.md"


def test_content_shows_lines(bench: Bench) -> None:
    found = bench.use("grep", pattern="x", output_mode="content")

    assert found.text == "/a.py:\n  2: x = 1\n  3: print(x)\n/b.md:\n  1: x marks it"


def test_count_counts(bench: Bench) -> None:
    assert bench.use("grep", pattern="x", output_mode="count").text == "/a.py: 2\n/b.md: 1"


def test_context_shows_lines_around(bench: Bench) -> None:
    found = bench.use("grep", pattern="x = 1", output_mode="content", context=1)

    assert found.text == "/a.py:\n  1- import os\n  2: x = 1\n  3- print(x)"


def test_a_glob_narrows_it(bench: Bench) -> None:
    assert bench.use("grep", pattern="x", glob="*.md").text == "/b.md"


def test_text_is_taken_literally_and_an_expression_is_hinted_at(bench: Bench) -> None:
    found = bench.use("grep", pattern="x|os").text

    assert found.startswith("No matches found")
    assert "regex=true" in found


def test_an_expression_when_asked(bench: Bench) -> None:
    assert bench.use("grep", pattern=r"^x\s", regex=True, output_mode="count").text == "/a.py: 1\n/b.md: 1"


def test_a_broken_expression_is_an_error(bench: Bench) -> None:
    assert code_of(bench.use("grep", pattern="(", regex=True)) == "invalid_pattern"


def test_a_cap_says_that_there_is_more(bench: Bench) -> None:
    found = bench.run(call("grep", pattern="x", output_mode="content", max_count=1))[0]

    assert found.text.startswith("/a.py:\n  2: x = 1\n\n")
    assert "stopped early" in found.text


def test_a_file_can_be_searched_alone(bench: Bench) -> None:
    assert bench.use("grep", pattern="x", path="/b.md").text == "/b.md"


def test_an_expression_that_would_take_for_ever_is_stopped(bench: Bench) -> None:
    bench.place("/evil.txt", "a" * 5000 + "!\n")
    stopped = bench.use("grep", pattern="(a|aa)+$", regex=True, path="/evil.txt")

    assert code_of(stopped) == "timeout"
