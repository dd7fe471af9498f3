"""The names of tools are the same everywhere, fit every provider, and are never shared."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents.mcp import tool_name


def test_a_name_says_server_and_tool() -> None:
    assert tool_name("github", "create_issue") == "mcp__github__create_issue"


@pytest.mark.parametrize(
    ("server", "tool"),
    [("a b", "x"), ("a__b", "x"), ("a_", "x"), ("a", ""), ("a", "x" * 60), ("a", "é"), ("a", "x.y")],
)
def test_what_would_be_ambiguous_ends_in_a_digest(server: str, tool: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,55}_[0-9a-f]{8}", tool_name(server, tool))


@given(st.tuples(st.text(min_size=1), st.text()), st.tuples(st.text(min_size=1), st.text()))
def test_any_name_fits_and_is_its_own(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_name(*one))
    assert (tool_name(*one) == tool_name(*other)) == (one == other)
