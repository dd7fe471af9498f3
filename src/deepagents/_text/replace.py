"""Replace exact text, or refuse with a reason."""

from __future__ import annotations

from itertools import islice
from typing import Final

from deepagents._text.endings import replace_text, to_lf, with_any_end
from deepagents._text.nearest import describe_miss
from deepagents.errors import BackendError

_PLACES_SHOWN: Final = 8
EMPTY_OLD_STRING_ERROR: Final = "old_string cannot be empty. Give the exact text to replace."


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
