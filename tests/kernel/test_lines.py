"""Lines, windows and line endings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents._text import (
    Window,
    is_blank,
    keep_line_endings,
    line_ending,
    split_keeping_ends,
    split_lines,
    to_lf,
    window,
)
from deepagents.errors import BackendError

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


def test_a_window_says_where_it_is() -> None:
    assert window("a\nb\nc\n", 1, 1) == Window("b\n", 2, 2, 3, 2)
    assert window("a\nb\nc", 1, 5) == Window("b\nc", 2, 3, 3, None)
    assert window("a\r\nb\rc", -7, 2) == Window("a\nb\n", 1, 2, 3, 2)


@pytest.mark.parametrize("text", ["", " \n\t\r\n"])
def test_a_blank_text_comes_back_as_it_is(text: str) -> None:
    assert window(text, 5, 0) == Window(text)


@pytest.mark.parametrize("limit", [0, -1])
def test_no_lines_asked_no_lines_given(limit: int) -> None:
    assert window("a", 99, limit) == Window("", no_lines_requested=True)


def test_a_window_past_the_end_is_an_error() -> None:
    with pytest.raises(BackendError, match=r"Line offset 2 exceeds file length \(2 lines\)") as caught:
        window("a\nb\n", 2, 1)
    assert caught.value.code == "invalid_argument"


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


def test_new_content_takes_over_consistent_crlf() -> None:
    assert keep_line_endings("a\r\nb\r\n", "x\ny") == "x\r\ny"
    assert keep_line_endings("a\r\nb\n", "x\ny") == "x\ny"
    assert keep_line_endings("a\r\n", "x\ry\n") == "x\ry\n"
    assert keep_line_endings("a\n", "x\n") == "x\n"
    assert keep_line_endings("a\rb\r", "x\n") == "x\n"
