"""Lines, windows and line endings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents._text import (
    is_blank,
    line_ending,
    split_keeping_ends,
    split_lines,
    to_lf,
    window,
)

TEXTS = st.text("ab\n\r \f\u2028")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("\n", [""]),
        ("a\n\nb", ["a", "", "b"]),
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),
        ("a\x0cb\u2028c\x85d\x0be", ["a\x0cb\u2028c\x85d\x0be"]),
        ("a\n\r\n", ["a", ""]),
    ],
)
def test_lines_end_in_three_ways_only(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@given(TEXTS)
def test_lines_with_their_ends_are_the_text(text: str) -> None:
    assert "".join(split_keeping_ends(text)) == text
    assert [line.rstrip("\r\n") for line in split_keeping_ends(text)] == split_lines(text)


@given(TEXTS, st.integers(1, 4))
def test_pages_put_together_are_the_text(text: str, limit: int) -> None:
    offset: int | None = 0
    pages: list[str] = []
    while offset is not None:
        page = window(text, offset, limit)
        pages.append(page.text)
        offset = page.next_offset
    assert "".join(pages) == (text if is_blank(text) else to_lf(text))


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("a", None),
        ("a\n", "\n"),
        ("a\r\nb\r\n", "\r\n"),
        ("a\rb", "\r"),
        ("a\nb\r\n", None),
        ("\r\n\r", None),
    ],
)
def test_a_text_may_have_one_line_ending(text: str, ending: str | None) -> None:
    assert line_ending(text) == ending
