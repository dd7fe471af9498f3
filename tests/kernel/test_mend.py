"""A quote that differs in looks alone lands where it fits, and the new text is changed as it has to be."""

from __future__ import annotations

import unicodedata

import pytest

from deepagents._text import mend, replace_exact
from deepagents.errors import BackendError

FILE = """class Cart:
    def add(self, item):
        # It’s a “new” item - naïve.
        self.total += item.price
        if item.gift:
            self.wrap(item)

    def close(self):
\t\treturn  self.total
"""


def land(old: str, new: str, content: str = FILE) -> tuple[str, str]:
    """Return the lines that the file gets for others, and what the difference is called."""
    mended = mend(content, old, new)
    assert mended is not None
    done = replace_exact(content, mended.old, mended.new)[0]
    kept = [line for line in done.split("\n") if line not in content.split("\n")]
    return "\n".join(kept), mended.how


@pytest.mark.parametrize(
    ("old", "new", "lines", "how"),
    [
        # blank space at line ends
        (
            "        self.total += item.price  \n        if item.gift: ",
            "        self.total += item.cost  \n        if item.gift: ",
            "        self.total += item.cost",
            "lines 4-5 apart from blank space",
        ),
        # the indentation is left out, or too deep, or made of tabs, or in other steps
        (
            "self.total += item.price\nif item.gift:\n    self.wrap(item)",
            "self.total += item.price\nif item.big:\n    self.wrap(item)",
            "        if item.big:",
            "lines 4-6 apart from indentation",
        ),
        (
            "          self.total += item.price\n          if item.gift:\n",
            "          self.total += item.cost\n          if item.gift:\n",
            "        self.total += item.cost",
            "lines 4-5 apart from indentation",
        ),
        (
            "\t\tif item.gift:\n\t\t\tself.wrap(item)",
            "\t\tif item.gift:\n\t\t\tself.wrap(item)\n\t\t\tif item.big:\n\t\t\t\tself.box(item)",
            "            if item.big:\n                self.box(item)",
            "lines 5-6 apart from indentation",
        ),
        (
            "  def add(self, item):\n    # It’s a “new” item - naïve.\n    self.total += item.price\n",
            "  def add(self, item):\n    # It’s a “new” item - naïve.\n    self.total += item.cost\n",
            "        self.total += item.cost",
            "lines 2-4 apart from indentation",
        ),
        (
            "    return  self.total",
            "    return  self.sum",
            "\t\treturn  self.sum",
            "line 9 apart from indentation",
        ),
        # what is in a line keeps its form where the new text keeps it
        (
            "return self.total",
            "return self.total + 1",
            "\t\treturn  self.total + 1",
            "line 9 apart from indentation and blank space",
        ),
        (
            '# It\'s a "new" item – nai\u0308ve.',
            '# It\'s a "new" item – nai\u0308ve, still.',
            "        # It’s a “new” item - naïve, still.",
            "line 3 apart from indentation and look-alike characters and Unicode form",
        ),
        # copied along, or escaped twice
        (
            "     4\t        self.total += item.price\n     5\t        if item.gift:\n",
            "     4\t        self.total += item.cost\n     5\t        if item.gift:\n",
            "        self.total += item.cost",
            "lines 4-5 apart from line numbers",
        ),
        (
            "     5\t        if item.gift:\n     6\t            self.wrap(item)",
            "        if item.big:\n            self.wrap(item)",
            "        if item.big:",
            "lines 5-6 apart from line numbers",
        ),
        (
            "        if item.gift:\\n            self.wrap(item)",
            "        if item.gift:\\n            self.box(item)",
            "            self.box(item)",
            "lines 5-6 apart from double escapes",
        ),
        # all of it in a code fence, or with HTML entities, or with its quotation marks escaped
        (
            "```python\n        if item.gift:\n            self.wrap(item)\n```",
            "```python\n        if item.gift:\n            self.box(item)\n```",
            "            self.box(item)",
            "lines 5-6 apart from a code fence",
        ),
        (
            "```\nself.wrap(item)\n```\n",
            "self.box(item)",
            "            self.box(item)",
            "line 6 apart from a code fence",
        ),
        # the line ends of another system
        (
            "        if item.gift:\r\n            self.wrap(item)",
            "        if item.gift:\r\n            self.box(item)",
            "            self.box(item)",
            "lines 5-6 apart from the line ends",
        ),
        # the new text is right already
        (
            "if item.gift:\nself.wrap(item)",
            "        if item.big:\n            self.wrap(item)",
            "        if item.big:",
            "lines 5-6 apart from indentation",
        ),
    ],
)
def test_what_differs_in_looks_lands(old: str, new: str, lines: str, how: str) -> None:
    assert land(old, new) == (lines, how)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # words, also their case
        ("Self.total += item.price", "x"),
        ("self.total  -= item.price", "x"),
        # a minus or a quotation mark of code, next to a dash or a curly one of a comment
        ('# It\'s a "new" item - naïve.', "# It's a \"new\" item - naïve.\ntitle = 'a'"),
        ('# It\'s a "new" item - naïve.\n self.total', 'title = "a"\n self.total'),
        # an indentation that nothing explains, or that may be meant either way
        ("self.total  += item.price", "self.total += 1\n  x()"),
        ("     if item.gift:\n       self.wrap(item)", "    if item.gift:\n  x()"),
        ("    if item.gift:\n    self.wrap(item)", "    if item.gift:\n    self.wrap(item)\n    x()"),
        ("            if item.gift:", "        if item.big:"),
        ("if item.gift:\nself.wrap(item)", "        if item.gift:\nself.box(item)"),
        # a quotation mark that stands for two in the file
        ('# It\'s a "new" item - naïve.', '# It\'s a "new" item.\n# And an "old" one.'),
        # numbers and escapes in a part of the new text, or perhaps meant
        ("     5\t        if item.gift:\n     6\t            self.wrap(item)", "     5\tif a:\n        b()"),
        ("        if item.gift:\\n            self.wrap(item)", "        if a:\\n            b()\n"),
        ("        if item.gift:\\n            self.wrap(item)", "        print('a\\nb')"),
        # other blank lines around it
        ("\n\n\n    def close(self):", "\n\n\n    def end(self):"),
        ("\n\n\n    def close(self):", "    def end(self):"),
        ("        if item.gift:\n\n", "        if item.big:\n\n"),
        # a line that was forgotten before them, or is to be removed with them
        ("        if item.gift:\n\n", "        if item.gift:\n            self.wrap(item)"),
        ("        self.total += item.price\n\n", ""),
        ("self.total += item\n\n", "self.sum += item"),
        # two lines that would become one
        ("\n\n    def add(self, item):\n", "    def put(self, item):"),
    ],
)
def test_what_is_not_certain_does_not_land(old: str, new: str) -> None:
    assert old not in FILE
    assert mend(FILE, old, new) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n\n    def add(self, item):", "    def put(self, item):"),
        ("    def add(self, item):\n\n\n", "    def put(self, item):"),
        ("\n\n    def add(self, item):\n\n", "    def put(self, item):\n"),
        ("\n\n    def add(self, item):\n", "    def put(self, item):\n"),
    ],
)
def test_blank_lines_around_a_quote_that_the_file_does_not_have_are_left_out(old: str, new: str) -> None:
    assert land(old, new) == ("    def put(self, item):", "line 2 apart from blank lines around")


def test_a_last_line_that_is_quoted_in_part_lands_though_it_is_indented() -> None:
    assert land("    say(a)\n    say(b", "    say(x)\n    say(b", "say(a)\nsay(b, c)\n") == (
        "say(x)",
        "lines 1-2 apart from indentation",
    )
    assert mend("x = say(a,  b)\n", " say(a, b", " say(c, b") is None


def test_a_mark_that_is_not_seen_hides_no_indentation() -> None:
    assert land("\u200b    def add(self, item):", "    def put(self, item):") == (
        "    def put(self, item):",
        "line 2 apart from look-alike characters",
    )


def test_two_places_that_fit_are_one_too_many() -> None:
    content = "if a:\n    go()\nif b:\n        go()\n"

    assert mend(content, "  go()  ", "stop()") is None
    assert land("if b:\n    go()", "if b:\n    stop()", content) == (
        "        stop()",
        "lines 3-4 apart from indentation",
    )


def test_a_better_fit_of_two_is_a_guess_too() -> None:
    content = "if a:\n    go(1, 2)\nif b:\n        go(1, 2)\n"

    assert mend(content, "        go(1,  2)", "        stop()") is None


@pytest.mark.parametrize(
    ("content", "old", "new", "line", "kind"),
    [
        (
            "if a < b && c:\n",
            "a &lt; b &amp;&amp; c",
            "a &lt; c &amp;&amp; b",
            "if a < c && b:",
            "HTML entities",
        ),
        ("if a < b:\n", "a &lt; b", "a == b", "if a == b:", "HTML entities"),
        ('x = ["a",\n  "b"]\n', '[\\"a\\",\n  \\"b\\"]', '[\\"a\\",\n  \\"c\\"]', '  "c"]', "double escapes"),
    ],
)
def test_what_was_written_in_another_code_as_a_whole_lands(
    content: str, old: str, new: str, line: str, kind: str
) -> None:
    done, how = land(old, new, content)

    assert done.split("\n")[-1] == line
    assert how.endswith(f"apart from {kind}")


@pytest.mark.parametrize(
    ("content", "old", "new"),
    [
        # a fence that may be meant
        ("~~~\nx = 1\n~~~\n```\ny\n```\n", "```\nx = 1\n```", "```js\nx = 1\n```"),
        ("x = 1\n", "```\nx = 1\n```", "Write:\n```\nx = 2\n```"),
        # in part, or of another kind
        ("<a> & b\n", "<a> &amp; b", "<a> &amp; c"),
        ("a < b\n", "a &lt; b", "a &lt; <b>"),
        ("a < b\n", "a &lt; b", "a &lt; b &amp; c"),
        ('say("a")\nsay("b")\n', 'say(\\"a\\")\nsay(\\"b\\")', 'say("c")\nsay(\\"d\\")'),
    ],
)
def test_a_code_that_may_be_meant_does_not_land(content: str, old: str, new: str) -> None:
    assert mend(content, old, new) is None


def test_what_may_be_a_number_of_the_file_is_no_line_number() -> None:
    assert mend("1: one\n2: two\n", "3: two", "3: three") is None
    assert mend("1\tone\n2\ttwo\n", "3\ttwo", "3\tthree") is None
    assert land("2: two", "2: three", "one\ntwo\n") == ("three", "line 2 apart from line numbers")


def test_a_line_end_that_the_file_does_not_have_is_left_out() -> None:
    assert land("two\n", "three\n", "one\ntwo") == ("three", "line 2 apart from the line end")
    mended = mend("one\ntwo", "two\n", "")
    assert mended is not None
    assert replace_exact("one\ntwo", mended.old, mended.new)[0] == "one\n"


def test_a_part_of_a_line_lands_without_the_rest() -> None:
    assert land("a  +  b", "a - b", "total = a + b  # sum\n") == (
        "total = a - b  # sum",
        "line 1 apart from blank space",
    )
    assert mend("total = a + b + c\n", "a  +  b\n", "a - b\n") is None
    assert mend("x = a + b, a + b\n", "a  +  b", "c") is None


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_the_unicode_form_of_the_file_is_kept(form: str) -> None:
    other = "NFD" if form == "NFC" else "NFC"
    content, old, new = (
        unicodedata.normalize(kind, text)  # pyright: ignore[reportArgumentType]
        for kind, text in ((form, "né\nplain\n"), (other, "né"), (other, "né à la"))
    )
    mended = mend(content, old, new)

    assert mended is not None
    assert unicodedata.normalize("NFC", mended.new) == "né à la"
    assert mended.new.startswith(mended.old)
    assert mended.how == "line 1 apart from Unicode form"


def test_windows_line_ends_are_kept() -> None:
    content = FILE.replace("\n", "\r\n")
    mended = mend(content, "if item.gift:  \nself.wrap(item)", "if item.big:\nself.wrap(item)")

    assert mended is not None
    assert replace_exact(content, mended.old, mended.new)[0] == content.replace("gift", "big")


def test_a_text_that_is_too_long_is_left_alone() -> None:
    assert mend("a\n" * 60_000 + "b c\n", "b  c", "d") is None
    with pytest.raises(BackendError, match="Nearest place"):
        replace_exact("b c\n", "b  c", "d")


def test_a_blank_line_shows_what_indentation_became() -> None:
    mended = mend("first()\n    \nlast()\n", "first()\n\t\nlast()", "first()\n\t\n\tmore()\nlast()")

    assert mended is not None
    assert mended.new == "first()\n    \n    more()\nlast()"


def test_a_minus_is_not_made_a_dash() -> None:
    assert mend("# a — b\n", "# a - b", "# a - b\nwidth = x - 1") is None
