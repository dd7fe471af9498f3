"""Exact replacement that keeps line endings and explains a miss."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Final

from deepagents._text.lines import line_ending, to_lf
from deepagents._text.nearest import describe_nearest
from deepagents.errors import BackendError

# Atomic: otherwise half of a `\r\n` could match, and the other half would stay.
_ANY_END = r"(?>\r\n|\n|\r)"
_END = re.compile(r"\r\n|\n|\r")
_SHOWN = 200
_PLACES_SHOWN = 8
EMPTY_OLD_STRING_ERROR: Final = "old_string cannot be empty. Give the exact text to replace."


@dataclass(frozen=True, slots=True)
class Replacement:
    """A text after replacement, and the number of places replaced."""

    content: str
    count: int


def replace_exact(content: str, old: str, new: str, replace_all: bool = False) -> Replacement:
    """Replace `old` by `new` in one place, or in all. A `\\n` in `old` fits any line end, which is then kept.

    Raises:
        BackendError: `invalid_argument` for an empty `old`, `no_match`, or `ambiguous_match`.
    """
    if not old:
        raise BackendError("invalid_argument", EMPTY_OLD_STRING_ERROR)
    done = _replace(content, old, new)
    if not done.count:
        raise BackendError("no_match", _miss(content, old))
    if done.count > 1 and not replace_all:
        raise BackendError("ambiguous_match", _ambiguity(content, old, done.count))
    return done


def _replace(content: str, old: str, new: str) -> Replacement:
    if "\r" in old and old in content:
        return Replacement(content.replace(old, new), content.count(old))
    ending = line_ending(content)
    if ending is None and "\r" in content:
        return _replace_mixed(content, old, new)
    if ending is not None:
        old, new = to_lf(old).replace("\n", ending), to_lf(new).replace("\n", ending)
    return Replacement(content.replace(old, new), content.count(old))


def _replace_mixed(content: str, old: str, new: str) -> Replacement:
    """Replace where lines end in different ways: new lines end as the replaced ones did."""

    def put(found: re.Match[str]) -> str:
        replaced_end = _END.search(found.group())
        return to_lf(new).replace("\n", replaced_end.group()) if replaced_end else new

    return Replacement(*_any_end(old).subn(put, content))


def _any_end(text: str) -> re.Pattern[str]:
    return re.compile(_ANY_END.join(map(re.escape, to_lf(text).split("\n"))))


def _ambiguity(content: str, old: str, count: int) -> str:
    text = to_lf(content)
    found = islice(_any_end(old).finditer(text), _PLACES_SHOWN)
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
    return f"String not found in file: '{shown}'. {describe_nearest(plain, wanted)}"


def _trailing_newline(times: int) -> str:
    hint = (
        "String not found in file: old_string ends with a newline, but the file ends without one. "
        "Retry with the trailing newline removed"
    )
    if times == 1:
        return f"{hint}."
    return f"{hint} and add surrounding context: without it the text would appear {times} times."
