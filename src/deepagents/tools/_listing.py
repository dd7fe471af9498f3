"""Lists of files as a model reads them: one whole line an entry, and no more than a result may have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from deepagents.errors import ErrorCode, ToolFailure
from deepagents.tools._context import ToolContext

NOTHING_FOUND: Final = "No files found"
_MOST_OF_A_LINE: Final = 5_000


def require_some(entries: Sequence[object] | None, error: str | None, code: ErrorCode | None) -> None:
    """Raise the error of an answer that holds nothing else; next to entries it is a note.

    Raises:
        ToolFailure: with the code of the answer.
    """
    if error and not entries:
        raise ToolFailure(code or "io_error", error)


def render_listing(
    context: ToolContext, lines: Sequence[str], more: str, notes: Iterable[str | None] = ()
) -> str:
    """Return the lines that fit into a result, how many did not, and the notes.

    `more` says of what there is more, and how to get at it.
    """
    most = context.limits.listing_characters
    room = most
    shown: list[str] = []
    for line in lines:
        line = _cut(line, min(_MOST_OF_A_LINE, most))
        room -= len(line) + 1
        # One line is always shown, or asking again would never get on.
        if room < 0 and shown:
            break
        shown.append(line)
    left = len(lines) - len(shown)
    notes = [f"{left:,} more {more}" if left else None, *notes, context.files.describe_left_out()]
    return "\n".join([*shown, *(f"\n{note}" for note in notes if note)])


def _cut(line: str, most: int) -> str:
    left = len(line) - most
    return f"{line[:most]} ... [{left} characters cut]" if left > 0 else line
