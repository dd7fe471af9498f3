"""read_file shows numbered pages, says what is left, and always gets on."""

from __future__ import annotations

import pytest

from deepagents.testing import call
from tests.tools.bench import Bench, code_of


def lines(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


def test_a_whole_file_is_numbered_and_nothing_else(bench: Bench) -> None:
    bench.place("/a.txt", "one\ntwo\n")

    assert bench.use("read_file", file_path="/a.txt").text == "     1\tone\n     2\ttwo"


def test_a_page_says_what_it_holds_and_how_to_go_on(bench: Bench) -> None:
    bench.place("/a.txt", lines(250))
    first, last = bench.run(
        call("read_file", file_path="/a.txt"), call("read_file", file_path="/a.txt", offset=200)
    )

    assert first.text.endswith("[Lines 1-100 of 250. 150 lines remain; next offset 100.]")
    assert last.text.startswith("   201\tline 201")
    assert last.text.endswith("[Lines 201-250 of 250. End of file.]")


def test_the_header_form_leaves_the_text_as_it_is(bench: Bench) -> None:
    bench.place("/a.txt", lines(3))
    page = bench.run(call("read_file", file_path="/a.txt", limit=2), read_format="header")[0]

    assert page.text == "@@ lines 1-2 of 3 | next offset 2 @@\nline 1\nline 2"


@pytest.mark.parametrize("content", ["", "  \n"])
def test_an_empty_file_is_said_to_be_empty(bench: Bench, content: str) -> None:
    bench.place("/a.txt", content)

    assert "exists but has empty contents" in bench.use("read_file", file_path="/a.txt").text


def test_no_lines_are_read_when_none_are_asked_for(bench: Bench) -> None:
    bench.place("/a.txt", "one\n")

    assert "limit was 0" in bench.use("read_file", file_path="/a.txt", limit=0).text


def test_an_offset_past_the_end_is_an_error_that_tells_the_length(bench: Bench) -> None:
    bench.place("/a.txt", lines(3))
    refused = bench.use("read_file", file_path="/a.txt", offset=9)

    assert code_of(refused) == "invalid_argument"
    assert "3 lines" in refused.text


def test_a_missing_file_is_an_error_with_a_code(bench: Bench) -> None:
    refused = bench.use("read_file", file_path="/none.txt")

    assert (refused.status, code_of(refused)) == ("error", "file_not_found")
    assert "/none.txt" in refused.text


def test_a_page_too_large_is_cut_at_a_line_and_goes_on_from_there(bench: Bench) -> None:
    bench.place("/a.txt", "".join(f"{number:04} {'x' * 95}\n" for number in range(1, 101)))
    page = bench.run(call("read_file", file_path="/a.txt"), tool_token_limit_before_evict=1000)[0]
    shown = page.text.split("\n")
    last_number = int(shown[-3].split("\t")[0])

    assert len(page.text) <= 4000
    assert (
        shown[-2]
        == f"[Lines 1-{last_number} of 100. {100 - last_number} lines remain; next offset {last_number}.]"
    )


def test_a_line_too_long_for_a_result_shows_its_start_and_the_way_past_it(bench: Bench) -> None:
    bench.place("/a.txt", "x" * 50_000 + "\nnext\n")
    page = bench.run(call("read_file", file_path="/a.txt"), tool_token_limit_before_evict=1000)[0]

    assert len(page.text) <= 4000
    assert "Next offset 1." in page.text


@pytest.mark.parametrize(
    ("limit", "read_format"),
    [(1, "numbered"), (1, "header"), (60, "numbered"), (99, "header"), (150, "numbered")],
)
def test_a_small_limit_still_shows_the_start(bench: Bench, limit: int, read_format: str) -> None:
    bench.place("/a.txt", "".join(f"line {number} of this file\n" for number in range(1, 200)))
    page = bench.run(
        call("read_file", file_path="/a.txt"), tool_token_limit_before_evict=limit, read_format=read_format
    )[0]

    assert "line 1 of this file" in page.text
    assert "line 99 " not in page.text
    assert "next offset" in page.text.lower()


def test_reading_on_from_each_page_shows_every_line_once(bench: Bench) -> None:
    bench.place("/a.txt", "".join(f"line {number};\n" for number in range(1, 31)))
    seen = ""
    offset = 0
    for _ in range(40):
        page = bench.run(
            call("read_file", file_path="/a.txt", offset=offset), tool_token_limit_before_evict=80
        )[0].text
        seen += page
        if "next offset" not in page.lower():
            break
        offset = int(page.lower().partition("next offset ")[2].partition(".")[0])

    assert [seen.count(f"line {number};") for number in range(1, 31)] == [1] * 30
