"""Replace exact text; explain a miss by the place that is nearest, and by what differs there."""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import islice, zip_longest
from types import MappingProxyType
from typing import Final

import regex

from deepagents._text.endings import replace_text, to_lf, with_any_end
from deepagents._text.lines import split_lines
from deepagents._text.show import number_lines
from deepagents.errors import BackendError

_SHOWN = 200
_PLACES_SHOWN = 8
EMPTY_OLD_STRING_ERROR: Final = "old_string cannot be empty. Give the exact text to replace."
_MAX_LENGTH: Final = 2_000_000
_MAX_LINES: Final = 50_000
_MAX_LINE: Final = 20_000
_MAX_OLD_LINES: Final = 40
_MAX_SHOWN: Final = 12
_MAX_WIDTH: Final = 200
_CANDIDATES: Final = 20
_ALIKE: Final = 0.6
_NOTHING_ALIKE: Final = "No similar place was found. Read the file again and copy the text exactly."

_LOOK_ALIKES: Final = str.maketrans(
    {**dict.fromkeys("‘’‚‛′", "'"), **dict.fromkeys("“”„‟″", '"'), **dict.fromkeys("‐‑‒–—―−", "-")}
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad")
)
# Normalising sorts each run of combining marks, which takes the square of its length and holds the
# interpreter's lock: 200,000 marks stop every thread for 40 s. No text has more than a few, so the rest is
# left out. The two half-width Japanese sound marks are letters that become marks when they are normalised.
_MORE_MARKS = regex.compile(r"([\p{M}\uff9e\uff9f]{8})[\p{M}\uff9e\uff9f]+")
_BLANKS = re.compile(r"[ \t\f\v]+")
_WORD = re.compile(r"\w+")


def replace_exact(content: str, old: str, new: str, replace_all: bool = False) -> tuple[str, int]:
    """Replace `old` by `new` in one place, or in all; return the text and the number of places.

    A `\\n` in `old` fits any line end, which is then kept.

    Raises:
        BackendError: `invalid_argument` for an empty `old`, `no_match`, or `ambiguous_match`.
    """
    if not old:
        raise BackendError("invalid_argument", EMPTY_OLD_STRING_ERROR)
    replaced, count = replace_text(content, old, new)
    if not count:
        raise BackendError("no_match", _miss(content, old))
    if count > 1 and not replace_all:
        raise BackendError("ambiguous_match", _ambiguity(content, old, count))
    return replaced, count


def _ambiguity(content: str, old: str, count: int) -> str:
    text = to_lf(content)
    found = islice(with_any_end(old).finditer(text), _PLACES_SHOWN)
    numbers = [str(text.count("\n", 0, place.start()) + 1) for place in found]
    more = ", ..." if count > _PLACES_SHOWN else ""
    return (
        f"old_string appears {count} times in the file, "
        f"in multiple places (lines {', '.join(numbers)}{more}). "
        "Add surrounding context to name one place, or set replace_all to change them all."
    )


def _miss(content: str, old: str) -> str:
    plain, wanted = to_lf(content), to_lf(old)
    key = wanted.removesuffix("\n")
    if key and key != wanted and plain.endswith(key):
        return _trailing_newline(plain.count(key))
    shown = old if len(old) <= _SHOWN else f"{old[:_SHOWN]}..."
    return f"String not found in file: '{shown}'. {_describe_nearest(plain, wanted)}"


def _trailing_newline(times: int) -> str:
    hint = (
        "String not found in file: old_string ends with a newline, but the file ends without one. "
        "Retry with the trailing newline removed"
    )
    if times == 1:
        return f"{hint}."
    return f"{hint} and add surrounding context: without it the text would appear {times} times."


def _even_blanks(text: str) -> str:
    return _BLANKS.sub(" ", text).strip(" ")


def _even_characters(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _MORE_MARKS.sub(r"\1", text.translate(_LOOK_ALIKES)))


_EVENED: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {"look-alike characters": _even_characters, "case": str.casefold, "whitespace": _even_blanks}
)


def _describe_nearest(content: str, old: str) -> str:
    """Describe where the lines most like `old` are and how they differ. Lines end with `\n` in both."""
    # Bounds for the time: this runs for each failed edit, on whatever a file holds.
    lines = [line[:_MAX_LINE] for line in split_lines(content[:_MAX_LENGTH])[:_MAX_LINES]]
    wanted = [line[:_MAX_LINE] for line in split_lines(old[:_MAX_LENGTH])[:_MAX_OLD_LINES]]
    even_lines, even_wanted = _even_out(lines), _even_out(wanted)
    found = _find_apart_from_looks(even_lines, even_wanted)
    if found is not None:
        return _looks_differ(lines[found[0] : found[1]], wanted, found[0] + 1)
    start = _find_most_lines_in_common(even_lines, even_wanted)
    if start is None:
        start = _find_most_alike_line(lines, wanted)
    if start is None:
        return _NOTHING_ALIKE
    start = max(start, 0)
    return _lines_differ(lines[start : start + len(wanted)], wanted, start + 1)


def _even_out(lines: Sequence[str], without: str = "") -> list[str]:
    """Remove the differences that are easily overlooked, up to `_MAX_LENGTH` characters of result.

    This goes line by line so that other threads get their turn, and counts what comes out because one
    character can stand for eighteen.
    """
    evened: list[str] = []
    room = _MAX_LENGTH
    for line in lines:
        for kind, even in _EVENED.items():
            if kind != without:
                line = even(line)
        evened.append(line)
        room -= len(line)
        if room < 0:
            break
    return evened


def _find_apart_from_looks(lines: Sequence[str], wanted: Sequence[str]) -> tuple[int, int] | None:
    """Find the lines that hold the wanted text once whitespace, case and look-alikes count as equal."""
    key = "\n".join(wanted).strip("\n")
    text = "\n".join(lines)
    at = text.find(key) if key else -1
    if at < 0:
        return None
    start = text.count("\n", 0, at)
    return start, start + key.count("\n") + 1


def _looks_differ(there: Sequence[str], wanted: Sequence[str], number: int) -> str:
    text, key = "\n".join(there), "\n".join(wanted).strip("\n")
    if key in text:
        return f"{_place(there, number)}\nIt differs in the blank lines before or after."
    key_lines = key.split("\n")
    kinds = [
        kind
        for kind in _EVENED
        if "\n".join(_even_out(key_lines, kind)).strip("\n") not in "\n".join(_even_out(there, kind))
    ]
    pairs = [pair for pair in zip_longest(there, key_lines, fillvalue="") if pair[0] != pair[1]]
    in_file, in_old = next((pair for pair in pairs if pair[1] not in pair[0]), pairs[-1])
    return (
        f"{_place(there, number)}\nIt differs in {' and '.join(kinds) or 'look-alike characters'}: "
        f"the file has {ascii(in_file[:_MAX_WIDTH])}, old_string has {ascii(in_old[:_MAX_WIDTH])}. "
        "Copy the file's text exactly."
    )


def _find_most_lines_in_common(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    wanted_at: dict[str, list[int]] = defaultdict(list)
    for at, key in enumerate(wanted):
        if key:
            wanted_at[key].append(at)
    votes: dict[int, int] = defaultdict(int)
    for at, line in enumerate(lines):
        for inside in wanted_at.get(line, ()):
            votes[at - inside] += len(line)
    best = max(votes, key=lambda start: (votes[start], -start), default=None)
    return best if best is not None and 3 * votes[best] >= sum(map(len, wanted_at)) else None


def _find_most_alike_line(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    key_at = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()))
    key = wanted[key_at].strip()[:_MAX_WIDTH]
    if not key:
        return None
    words = set(_WORD.findall(key))
    shared = (
        (len(words.intersection(_WORD.findall(line[:_MAX_WIDTH]))), -at) for at, line in enumerate(lines)
    )
    best, found = _ALIKE, None
    matcher = SequenceMatcher(None, "", key, autojunk=False)
    for _, minus_at in heapq.nlargest(_CANDIDATES, shared):
        matcher.set_seq1(lines[-minus_at].strip()[:_MAX_WIDTH])
        if matcher.ratio() > best:
            best, found = matcher.ratio(), -minus_at - key_at
    return found


def _lines_differ(there: Sequence[str], wanted: Sequence[str], number: int) -> str:
    cut_there = [line[:_MAX_WIDTH] for line in there]
    cut_wanted = [line[:_MAX_WIDTH] for line in wanted]
    diff = islice(unified_diff(cut_there, cut_wanted, n=0, lineterm=""), 2, None)
    rows = [row for row in diff if not row.startswith("@@")]
    shown = "\n".join(rows[:_MAX_SHOWN])
    more = "\n..." if len(rows) > _MAX_SHOWN else ""
    return (
        f"{_place(there, number)}\nIt differs ('-' the file, '+' old_string):\n{shown}{more}\n"
        "Copy the file's text exactly."
    )


def _place(there: Sequence[str], number: int) -> str:
    last = number + len(there) - 1
    where = f"line {number}" if last == number else f"lines {number}-{last}"
    shown = number_lines("\n".join(line[:_MAX_WIDTH] for line in there[:_MAX_SHOWN]) + "\n", number)
    more = "\n..." if len(there) > _MAX_SHOWN else ""
    return f"Nearest place: {where}:\n{shown}{more}"
