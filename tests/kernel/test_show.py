"""Text made ready for a reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents._text import MAX_LINE_LENGTH, format_size, number_lines, preview, truncate


def test_lines_are_numbered_as_cat_does() -> None:
    assert number_lines("a\n\nb\n") == "     1\ta\n     2\t\n     3\tb"
    assert number_lines("a\r\nb", 99999) == " 99999\ta\n100000\tb"
    assert number_lines("") == ""


def test_a_long_line_goes_on_in_further_rows() -> None:
    rows = number_lines("x" * (2 * MAX_LINE_LENGTH + 1) + "\ny", 7).split("\n")

    assert [row.split("\t")[0] for row in rows] == ["     7", "   7.1", "   7.2", "     8"]
    assert [len(row.split("\t")[1]) for row in rows] == [MAX_LINE_LENGTH, MAX_LINE_LENGTH, 1, 1]


def test_a_short_text_is_its_own_preview() -> None:
    text = "\n".join(map(str, range(15)))
    assert preview(text) == text


def test_a_preview_keeps_both_ends() -> None:
    lines = preview("\n".join(map(str, range(100)))).split("\n")

    assert lines[:10] == [str(number) for number in range(10)]
    assert lines[10] == "... [85 lines truncated] ..."
    assert lines[11:] == ["95", "96", "97", "98", "99"]


def test_a_preview_is_bounded() -> None:
    assert preview("x" * 1001) == "x" * 1000 + " ... [1 characters cut]"
    assert len(preview(("x" * 9999 + "\n") * 999)) < 4 * 4000


@given(st.text(max_size=40), st.integers(-1, 50))
def test_a_truncated_text_fits(text: str, limit: int) -> None:
    cut = truncate(text, limit)
    assert len(cut) <= max(limit, 0)
    assert cut == text or len(text) > limit


def test_a_truncated_text_says_so() -> None:
    assert truncate("x" * 100, 50).endswith("... [the rest was cut]")
    assert truncate("abcdef", 5, "!") == "abcd!"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1550, "1.6 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (2_500_000_000, "2.5 GB"),
        (5 * 10**15, "5000.0 TB"),
    ],
)
def test_sizes_read_well(size: int, text: str) -> None:
    assert format_size(size) == text
