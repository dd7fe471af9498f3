"""Exact replacement: it lands, or says why not and where to look."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents._text import replace_exact
from deepagents.errors import BackendError, ErrorCode


def refused(content: str, old: str, code: ErrorCode) -> str:
    with pytest.raises(BackendError) as caught:
        replace_exact(content, old, "new")
    assert caught.value.code == code
    return caught.value.text


def test_several_places_need_context() -> None:
    text = refused("a\nb\r\nxay\n" + "a\n" * 10, "a", "ambiguous_match")

    assert "appears 12 times" in text
    assert "(lines 1, 3, 4, 5, 6, 7, 8, 9, ...)" in text
    assert "(lines 1, 2)" in refused("a\na\n", "a", "ambiguous_match")


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\r\ny\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n"),
        ("a\rb\rc", "a\nb", "x\ny", "x\ry\rc"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("a\r\nb\nc\nd\n", "b\nc", "x\ny", "a\r\nx\ny\nd\n"),
        ("a\r\nb\nc\nd\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\nc\nd\n"),
        ("a\r\nb\nc", "c", "x\r\ny", "a\r\nb\nx\r\ny"),
        ("a\r\n\r\nb\nc", "\n\n", "\n", "a\r\nb\nc"),
        ("abc", "b", "x\ny", "ax\nyc"),
    ],
)
def test_line_endings_are_kept(content: str, old: str, new: str, expected: str) -> None:
    assert replace_exact(content, old, new)[0] == expected


def test_places_that_differ_only_in_line_endings_are_the_same_text() -> None:
    mixed = "a\r\nb\r\n-\na\nb\n"

    assert "(lines 1, 4)" in refused(mixed, "a\nb", "ambiguous_match")
    assert replace_exact(mixed, "a\nb", "x\ny", replace_all=True) == ("x\r\ny\r\n-\nx\ny\n", 2)


def test_half_a_line_ending_never_matches() -> None:
    assert "String not found" in refused("a\r\nb\nc", "a\n\n", "no_match")


@given(st.text("ab\n"), st.text("ab\n", min_size=1), st.text("ab\n"))
def test_it_agrees_with_str_replace(content: str, old: str, new: str) -> None:
    if old in content:
        done = replace_exact(content, old, new, replace_all=True)
        assert done == (content.replace(old, new), content.count(old))
        crlf = replace_exact(content.replace("\n", "\r\n"), old, new, replace_all=True)
        assert crlf[0] == done[0].replace("\n", "\r\n") or "\n" not in content


@given(st.text("ab\n\r (“\t"), st.text("ab\n\r (“\t", min_size=1))
def test_a_miss_always_has_a_reason(content: str, old: str) -> None:
    with suppress(BackendError):
        assert replace_exact(content, old, "")[1] == 1


def test_blanks_after_the_last_line_are_pointed_out() -> None:
    assert "old_string has ' '" in refused("aa", "aa\n ", "no_match")
    assert "It differs in whitespace" in refused("aa", "aa\r ", "no_match")


def test_a_missing_last_newline_is_pointed_out() -> None:
    text = refused("a\nb", "b\n", "no_match")
    assert "String not found in file" in text
    assert "old_string ends with a newline" in text
    assert text.endswith("Retry with the trailing newline removed.")

    text = refused("b\nab", "b\n".replace("b", "ab"), "no_match")
    assert "add surrounding context" not in text

    text = refused("ab-ab", "ab\n", "no_match")
    assert "appear 2 times" in text
    assert "add surrounding context" in text
