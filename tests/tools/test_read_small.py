"""read_file where little fits: something is always shown, and no line is passed over unseen."""

from __future__ import annotations

import pytest

from deepagents.testing import call
from tests.tools.bench import Bench


@pytest.mark.parametrize("limit", [1, 20, 60, 99, 150])
@pytest.mark.parametrize("read_format", ["numbered", "header"])
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
