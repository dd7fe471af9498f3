"""Text of models, tools and files can steer no terminal."""

from __future__ import annotations

import pytest

from deepagents_cli.text import clean, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("windows\r\nlines", "windows\nlines"),
        ("over\rwritten", "over\\rwritten"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x9b2J", "\\x9b2J"),
        ("abc\u202edef", "abc\\u202edef"),
        ("abc\u200fdef\u2028", "abc\\u200fdef\\u2028"),
        ("half \ud83d", "half \\ud83d"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("zero\u200bwidth \ufeff", "zero\\u200bwidth \\ufeff"),
        ("ümläut 漢字 👩\u200d🚀 \u3000", "ümläut 漢字 👩\u200d🚀 \u3000"),
    ],
    ids=ascii,
)
def test_what_steers_a_terminal_becomes_visible(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_lines_are_joined() -> None:
    assert one_line("  one\n\n two\t three ") == "one two three"
