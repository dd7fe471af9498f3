"""A miss says where to look, and what differs there."""

from __future__ import annotations

from time import perf_counter

import pytest

from deepagents._text import replace_exact
from deepagents.errors import BackendError, ErrorCode

CODE = """def add(a, b):
    # Adds.
    return a + b


def greet(name):
    print(f"Hello, {name}!")
    return None
"""


def refused(content: str, old: str, code: ErrorCode) -> str:
    with pytest.raises(BackendError) as caught:
        replace_exact(content, old, "new")
    assert caught.value.code == code
    return caught.value.text


@pytest.mark.parametrize(
    ("old", "place", "kinds"),
    [
        ("def add(a, b):\n\t# Adds.", "lines 1-2:", "in whitespace"),
        ("return  a + b", "line 3:", "in whitespace"),
        ("    # Adds.   \n    return a + b\n", "lines 2-3:", "in whitespace"),
        ("print(f“Hello, {name}!”)", "line 7:", "in look-alike characters"),
        ("return\u00a0None", "line 8:", "in look-alike characters"),
        ("\u017fadd", "", ""),
        ("DEF greet(NAME):", "line 6:", "in case"),
        ("Return  None", "line 8:", "in case and whitespace"),
        ("\n\n\n\ndef greet(name):\n", "line 6:", "in the blank lines before or after"),
    ],
)
def test_a_near_miss_names_the_place_and_the_difference(old: str, place: str, kinds: str) -> None:
    text = refused(CODE, old, "no_match")

    assert f"Nearest place: {place}" in text or not place
    assert f"differs {kinds}" in text or not kinds


def test_a_near_miss_shows_both_sides() -> None:
    text = refused("x = “a”\n", 'x = "a"', "no_match")

    assert "     1\tx = “a”" in text
    assert r"the file has 'x = \u201ca\u201d', old_string has 'x = \"a\"'" in text.replace(
        "'x = \"a\"'", r"'x = \"a\"'"
    )


def test_a_character_that_differs_in_two_ways_is_a_look_alike() -> None:
    assert "differs in look-alike characters" in refused("mi\u017ft\n", "mist", "no_match")


def test_a_trailing_blank_is_seen() -> None:
    assert "the file has 'b ', old_string has 'b'" in refused("a\nb \nc\n", "a\nb\nc", "no_match")


def test_a_changed_block_is_found_by_its_other_lines() -> None:
    text = refused(CODE, "def greet(name):\n    print('Hi')\n    return None", "no_match")

    assert "Nearest place: lines 6-8:" in text
    assert "-    print(f\"Hello, {name}!\")\n+    print('Hi')" in text
    assert "\n-def" not in text


def test_a_block_may_hang_over_the_start() -> None:
    assert "lines 1-3:" in refused("keep this line\nx\ny\nz\n", "gone\nkeep this line\nq", "no_match")


def test_a_changed_line_is_found_by_its_words() -> None:
    text = refused(CODE, 'print(f"Hello, dear {name}!")', "no_match")

    assert "Nearest place: line 7:" in text
    assert '+print(f"Hello, dear {name}!")' in text


def test_removed_dashes_do_not_hide_a_difference() -> None:
    text = refused(
        "-- a comment here\nselect one thing;\n", "-- a comment there\nselect one thing;", "no_match"
    )
    assert "--- a comment here" in text


def test_a_long_block_is_shown_in_part() -> None:
    lines = [f"line number {number}" for number in range(30)]
    text = refused(
        "\n".join(lines),
        "\n".join(line + ("" if at % 2 else "!") for at, line in enumerate(lines)),
        "no_match",
    )

    assert "lines 1-30:" in text
    assert text.count("\n...") == 2


@pytest.mark.parametrize(
    ("content", "old"), [("", "a"), ("abc\n", "xyz"), ("a\nb\n", "\n\n\n\n"), ("a\nb", "  \t")]
)
def test_nothing_alike_is_said_too(content: str, old: str) -> None:
    assert "No similar place was found" in refused(content, old, "no_match")


def test_a_long_old_string_is_shown_in_part() -> None:
    assert "x..." in refused("a", "x" * 5000, "no_match")
    assert len(refused("a", "x" * 5000, "no_match")) < 400


@pytest.mark.parametrize(
    "content",
    [
        "".join(f"value_{number} = compute({number}, 'some text')\n" for number in range(25_000)),
        "a,b;" * 250_000,
        "\n" * 1_000_000,
        "}\n" * 500_000,
    ],
)
def test_a_miss_in_a_large_file_is_answered_soon(content: str) -> None:
    start = perf_counter()

    refused(content, "value_17 = compute(77, 'other text')\n}\n}\n" * 5, "no_match")

    assert perf_counter() - start < 15
