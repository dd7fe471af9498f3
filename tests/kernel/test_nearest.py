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
    ],
)
def test_a_near_miss_names_the_place_and_the_difference(old: str, place: str, kinds: str) -> None:
    text = refused(CODE, old, "no_match")

    assert f"Nearest place: {place}" in text or not place
    assert f"differs {kinds}" in text or not kinds


@pytest.mark.parametrize(
    ("old", "shown"),
    [
        ("greet(NAME):\n    print", ["greet(name):", "    print"]),
        ("a  +  b", ["a + b"]),
        ("    # Adds.\n    return A", ["    # Adds.", "    return a"]),
        ("    # Adds.\n    # See above.\n    return a +", ["    # Adds.", "    return a +"]),
        (
            "greet(name):\n    # See above.\n    return None",
            ["greet(name):", CODE.split("\n")[6], "    return None"],
        ),
    ],
)
def test_a_place_is_shown_as_far_as_the_quote_goes(old: str, shown: list[str]) -> None:
    """Who copies it whole replaces nothing that the new text does not have."""
    text = refused(CODE, old, "no_match")

    assert [row.partition("\t")[2] for row in text.split("\n") if "\t" in row] == shown
    assert "(as much of it as old_string has)" in text
    assert "\n".join(shown) in CODE


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("```\nreturn a + b\n```", "stands in a code fence; leave it out. Without it the text fits line 3."),
        (
            "Hello, {name}!&quot;",
            "is written with HTML entities; write the characters. With them it fits line 7.",
        ),
    ],
)
def test_a_quote_in_another_code_is_told_so(old: str, said: str) -> None:
    assert said in refused(CODE, old, "no_match")


@pytest.mark.parametrize("old", ["\n\n\n\ndef greet(name):\n", "def greet(name):\n\n\n"])
def test_blank_lines_that_the_file_has_not_are_not_shown_to_be_copied(old: str) -> None:
    text = refused(CODE, old, "no_match")

    assert "Without the blank lines at its ends it fits line 6. Leave them out, or read lines 4-8" in text


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


def test_a_place_ends_where_the_texts_no_longer_agree() -> None:
    shown = refused("keep this line\nx\ny\nz\n", "gone\nkeep this line\nq", "no_match")

    assert "Nearest place: line 1:\n     1\tkeep this line\nIt differs" in shown


def test_a_changed_line_is_found_by_its_words() -> None:
    text = refused(CODE, 'print(f"Hello, dear {name}!")', "no_match")

    assert "Nearest place: line 7:" in text
    assert '+print(f"Hello, dear {name}!")' in text


def test_removed_dashes_do_not_hide_a_difference() -> None:
    text = refused(
        "-- a comment here\nselect one thing;\n", "-- a comment there\nselect one thing;", "no_match"
    )
    assert "--- a comment here" in text


def test_a_place_is_shown_whole_or_not_at_all() -> None:
    lines = [f"line number {number}" for number in range(70)]
    wanted = [line + ("" if at % 2 else "!") for at, line in enumerate(lines)]
    text, short = refused("\n".join(lines), "\n".join(wanted), "no_match"), "\n".join(wanted[:40])

    assert "Nearest place: lines 1-70, too long to show here" in text
    assert "    40\tline number 39\nIt differs" in refused("\n".join(lines), short, "no_match")


TWINS = """class Cart:
    def add(self, item):
        self.total += item.price
        self.log(item)

    def put_back(self, item):
        self.total -= item.price
        self.log(item)

    def add_twice(self, item):
        self.total += item.price
        self.log(item)
"""


def test_every_place_that_fits_apart_from_looks_is_named() -> None:
    text = refused(TWINS, "self.total += item.price\n\tself.log(item)", "no_match")

    assert "2 places fit apart from whitespace" in text
    assert "lines 3-4 (in `def add(self, item):`), lines 11-12 (in `def add_twice(self, item):`)" in text
    assert "Quote more lines" in text
    assert "\t" not in text.partition("places fit")[2]


def test_places_that_are_equally_near_are_all_named() -> None:
    text = refused(TWINS, "        self.total += item.cost\n        self.log(item)", "no_match")

    assert "3 places are equally near: lines 3-4 (in `def add(self, item):`), lines 7-8 (in" in text


@pytest.mark.parametrize(
    "old",
    [
        "    def put_back(self, item):\n        self.log(item)",
        "    def put_back(self, item):\n        # As it was.\n        self.total -= item.price\n"
        "        self.log(item)",
        "    def put_back(self, item):\n        ...\n        self.log(item)\n",
        "    def put_back(self, item):\n        # ... existing code ...\n        self.log(item)\n",
    ],
    ids=["forgotten", "made up", "elided", "elided in words"],
)
def test_a_place_reaches_from_where_the_texts_agree_to_where_they_do_again(old: str) -> None:
    """Who copies it whole loses no line of the file."""
    text = refused(TWINS, old, "no_match")
    shown = [row.partition("\t")[2] for row in text.split("\n") if "\t" in row]

    assert shown == TWINS.split("\n")[5:8]


def test_an_elision_is_said_in_words() -> None:
    text = refused(TWINS, "    def put_back(self, item):\n        ...\n        self.log(item)", "no_match")
    assert text.endswith("'...' in old_string stands for lines of the file: quote them too, or fewer.")


def test_a_place_whose_end_cannot_be_known_is_not_shown() -> None:
    for old in ("    def add(self, item):\n        ...\n", "self.total -= item.price\n\n"):
        text = refused(TWINS, old, "no_match")
        assert "\t" not in text
        assert "quote" in text


def test_line_numbers_that_were_copied_along_are_named() -> None:
    text = refused(CODE, "     1\tdef add(a, b):\n     2\t    # Adds.", "no_match")

    assert "Each line of old_string begins with its line number; leave the numbers out." in text
    assert text.endswith("Without them it fits lines 1-2.")


def test_what_is_escaped_twice_is_named() -> None:
    text = refused(CODE, r"# Adds.\n    return a + b", "no_match")

    assert "old_string is escaped twice: it has the two characters \\ and n where the file has" in text
    assert text.endswith("Unescaped it fits lines 2-3.")
    assert "3 places fit there" in refused(TWINS, r"item.price\n        self.log(item)\n", "no_match")


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
