"""Three-way merging."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents._text import merge3

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\r\n", "\n"]), max_size=12).map("".join)


@given(TEXTS, TEXTS)
def test_one_side_unchanged_gives_the_other(base: str, other: str) -> None:
    assert merge3(base, base, other) == other
    assert merge3(base, other, base) == other
    assert merge3(base, other, other) == other


EDITS = st.lists(st.sampled_from(["keep", "ours", "theirs"]), min_size=1, max_size=20)
NEW = st.lists(st.sampled_from(["new 1\n", "new 2\n"]), max_size=3).map("".join)


@given(EDITS, NEW)
def test_disjoint_edits_both_land(edits: list[str], new: str) -> None:
    def version(*changed_by: str) -> str:
        lines = (new if who in changed_by else f"{at}\n" for at, who in enumerate(edits))
        return "".join(f"{line}fence {at}\n" for at, line in enumerate(lines))

    assert merge3(version(), version("ours"), version("theirs")) == version("ours", "theirs")


@given(TEXTS, TEXTS, TEXTS)
def test_the_sides_may_be_swapped(base: str, ours: str, theirs: str) -> None:
    merged, swapped = merge3(base, ours, theirs), merge3(base, theirs, ours)

    assert merged.count("<<<<<<< ours") == swapped.count("<<<<<<< ours")
    assert "<<<<<<< ours" in merged or merged == swapped


@given(TEXTS, TEXTS, TEXTS)
def test_a_clean_merge_invents_no_line(base: str, ours: str, theirs: str) -> None:
    merged = merge3(base, ours, theirs)
    if "<<<<<<< ours" not in merged:
        assert set(merged.splitlines()) <= set((base + "\n" + ours + "\n" + theirs).splitlines())


def test_different_changes_to_one_line_clash() -> None:
    merged = merge3("a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n", ("mine", "yours"))
    assert merged == "a\n<<<<<<< mine\nx\n=======\ny\n>>>>>>> yours\nc\n"


def test_a_deletion_clashes_with_a_change() -> None:
    merged = merge3("a\nb\nc\n", "a\nc\n", "a\ny\nc\n")
    assert merged == "a\n<<<<<<< ours\n=======\ny\n>>>>>>> theirs\nc\n"


def test_equal_changes_land_once() -> None:
    assert merge3("a\nb\nc\n", "a\nx\nc\n", "A\nx\nc\n").endswith(">>>>>>> theirs\nx\nc\n")
    assert merge3("a\nb\nc\nd\n", "a\nx\nc\nd\n", "a\nx\nc\nD\n") == "a\nx\nc\nD\n"


def test_changes_to_neighbouring_lines_both_land() -> None:
    assert merge3("a\nb\n", "A\nb\n", "a\nB\n") == "A\nB\n"


def test_two_additions_at_one_place_clash() -> None:
    assert merge3("a\n", "a\nx\n", "a\ny\n").count("<<<<<<<") == 1
    assert merge3("a\n", "a\nx\n", "A\n").count("<<<<<<<") == 1
    assert merge3("a\n", "a\nx\n", "a\nx\n") == "a\nx\n"


def test_one_wide_change_clashes_with_many_small_ones() -> None:
    base = "".join(f"{n}\n" for n in range(9))
    ours = base.replace("1\n", "one\n").replace("4\n", "four\n").replace("8\n", "eight\n")
    theirs = base.replace("0\n1\n2\n3\n4\n5\n", "all\n")

    merged = merge3(base, ours, theirs)

    assert merged.count("<<<<<<<") == 1
    assert merged.endswith("6\n7\neight\n")


def test_markers_end_as_the_lines_do() -> None:
    merged = merge3("a\r\nb", "a\r\nx", "a\r\ny")
    assert merged == "a\r\n<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"
    assert merge3("a\r\n", "x\r\n", "y\r\n").startswith("<<<<<<< ours\r\nx\r\n=======\r\n")


@pytest.mark.parametrize(
    ("base", "ours"),
    [
        ("\n" * 100_000, "x" + "\n" * 100_000),
        ("a\nb\n" * 20_000, "b\na\n" * 20_000),
        ("".join(f"{n}\n" for n in range(20_000)), "".join(f"{n}\n-\n" for n in range(20_000))),
        ("".join(f"{n}\n" for n in range(20_000)), "".join(f"{n}\n" for n in reversed(range(20_000)))),
    ],
)
def test_hard_texts_merge_soon(base: str, ours: str) -> None:
    start = process_time()

    merged = merge3(base, ours, base + "the end\n")

    assert process_time() - start < 15
    assert "the end\n" in merged
