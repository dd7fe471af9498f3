"""Replace exact text, or refuse with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile
from typing import Final, NamedTuple

from deepagents._text.endings import replace_text, to_lf, with_any_end
from deepagents._text.nearest import describe_miss
from deepagents.errors import BackendError

_PLACES_SHOWN: Final = 8
EMPTY_OLD_STRING_ERROR: Final = "old_string cannot be empty. Give the exact text to replace."


class Replacement(NamedTuple):
    """Text to replace, and what to put there."""

    old: str
    new: str
    replace_all: bool = False


def replace_each(content: str, edits: Sequence[Replacement]) -> tuple[str, int]:
    """Replace one text after the other, each in what the last one left; return as `replace_exact` does.

    Raises:
        BackendError: as from `replace_exact`; of several it names the one that fails.
    """
    count = 0
    for at, edit in enumerate(edits):
        try:
            content, times = replace_exact(content, *edit)
        except BackendError as error:
            raise name_edit(error, at, edits) from error
        count += times
    return content, count


def name_edit(error: BackendError, at: int, edits: Sequence[Replacement]) -> BackendError:
    """Return the error of one edit, which of several says that it is one, and that none was made."""
    if len(edits) == 1:
        return error
    return BackendError(
        error.code, f"edits[{at}]: {error.text}\nNothing was written: no edit of the call was made."
    )


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
        raise BackendError("no_match", describe_miss(content, old))
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


def find_change(before: str, after: str) -> tuple[str, str]:
    """Return the one exact edit, of a text that occurs once, that turns a text into another."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = _count_equal(old, new)
    end = _count_equal(old[start:][::-1], new[start:][::-1])
    more = 1
    while True:
        last = len(old) - end
        quote = "".join(old[start:last])
        # From both ends, as places that overlap are two, and count as one.
        if quote and before.find(quote) == before.rfind(quote) or (not start and not end):
            return quote, "".join(new[start : len(new) - end])
        # Twice as much each time: a long text may be the same line over and over.
        start, end, more = max(start - more, 0), max(end - more, 0), 2 * more


def _count_equal(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
