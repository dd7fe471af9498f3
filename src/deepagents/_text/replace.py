"""Exact replacement that keeps line endings and explains a miss."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from deepagents._text.endings import replace_text, to_lf, with_any_end
from deepagents._text.nearest import describe_nearest
from deepagents.errors import BackendError

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
    done = Replacement(*replace_text(content, old, new))
    if not done.count:
        raise BackendError("no_match", _miss(content, old))
    if done.count > 1 and not replace_all:
        raise BackendError("ambiguous_match", _ambiguity(content, old, done.count))
    return done


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
    return f"String not found in file: '{shown}'. {describe_nearest(plain, wanted)}"


def _trailing_newline(times: int) -> str:
    hint = (
        "String not found in file: old_string ends with a newline, but the file ends without one. "
        "Retry with the trailing newline removed"
    )
    if times == 1:
        return f"{hint}."
    return f"{hint} and add surrounding context: without it the text would appear {times} times."
