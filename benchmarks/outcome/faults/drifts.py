"""The ways in which a model's quote of a file drifts from what stands there."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

Drift = Callable[[str], str]

_CURLY = str.maketrans({'"': "\u201d", "'": "\u2019"})
_STRAIGHT = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'"})
_DASHES = str.maketrans({"-": "\u2013", "\u2013": "-", "\u2014": "-"})


def _each_line(change: Callable[[str], str]) -> Drift:
    return lambda text: "\n".join(change(line) if line.strip() else line for line in text.split("\n"))


def _shallower(line: str) -> str:
    return line[2:] if line.startswith("  ") else line


def _dedented(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    depth = min(len(line) - len(line.lstrip(" ")) for line in lines)
    return _each_line(lambda line: line[depth:])(text)


def _tabbed(line: str) -> str:
    bare = line.lstrip(" ")
    return "\t" * ((len(line) - len(bare)) // 4) + bare


def _numbered(text: str) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.split("\n"), 3))


def _without_middle(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(lines[: len(lines) // 2] + lines[len(lines) // 2 + 1 :]) if len(lines) > 2 else text


def _with_invented(text: str) -> str:
    lines = text.split("\n")
    middle = lines[len(lines) // 2]
    invented = middle[: len(middle) - len(middle.lstrip())] + "# see above"
    return "\n".join([*lines[: len(lines) // 2], invented, *lines[len(lines) // 2 :]])


def _elided(text: str) -> str:
    lines = text.split("\n")
    return "\n".join([lines[0], "...", lines[-1]]) if len(lines) > 2 else text


def _misspelt(text: str) -> str:
    longest = max(re.findall(r"[A-Za-z]+", text), key=len)
    return text.replace(longest, longest[:-2] + longest[-1] + longest[-2] + "e", 1)


def _other_case(text: str) -> str:
    longest = max(re.findall(r"[A-Za-z]+", text), key=len)
    return text.replace(longest, longest.swapcase(), 1)


def _without_comment(text: str) -> str:
    return re.sub(r" +#.*$", "", text, count=1, flags=re.MULTILINE)


# The new text drifts along where a model has the habit (it indents both alike), not where it misread.
BOTH: Final[Mapping[str, Drift]] = MappingProxyType(
    {
        "indented less": _each_line(_shallower),
        "indented more": _each_line("    ".__add__),
        "dedented": _dedented,
        "tabs for blanks": _each_line(_tabbed),
        "blanks for tabs": lambda text: text.replace("\t", "    "),
        "curly quotes": lambda text: text.translate(_CURLY),
        "straight quotes": lambda text: text.translate(_STRAIGHT),
        "dashes": lambda text: text.translate(_DASHES),
        "decomposed letters": lambda text: unicodedata.normalize("NFD", text),
        "line numbers": _numbered,
        "escaped line ends": lambda text: text.replace("\n", "\\n"),
        "escaped quotes": lambda text: text.replace('"', '\\"'),
        "carriage returns": lambda text: text.replace("\n", "\r\n"),
        "entities": lambda text: html.escape(text, quote=False),
        "fenced": lambda text: f"```\n{text}\n```",
    }
)
OLD_ALONE: Final[Mapping[str, Drift]] = MappingProxyType(
    {
        "blanks at ends": _each_line(lambda line: f"{line}  "),
        "blanks doubled": _each_line(lambda line: re.sub(r"(?<=\S) (?=\S)", "  ", line, count=1)),
        "no-break spaces": _each_line(lambda line: re.sub(r"(?<=\S) (?=\S)", "\u00a0", line)),
        "zero width": lambda text: "\u200b" + text,
        "a word": _misspelt,
        "letter case": _other_case,
        "a line missing": _without_middle,
        "a line invented": _with_invented,
        "elided": _elided,
        "blank line after": lambda text: f"{text}\n\n\n",
        "blank line before": lambda text: f"\n\n\n{text}",
        "comment left out": _without_comment,
    }
)
WAYS: Final = (*BOTH, *OLD_ALONE)


def drift(way: str, old: str, new: str) -> tuple[str, str]:
    """Return the quote and the new text as a model writes them that errs in this way."""
    if way in BOTH:
        return BOTH[way](old), BOTH[way](new)
    return OLD_ALONE[way](old), new


def is_told_apart(content: str, old: str, drifted: str) -> bool:
    """Return whether the drifted quote stands nowhere: one that stands somewhere no harness could doubt."""
    return drifted != old and drifted not in content and drifted not in content.replace("\r\n", "\n")
