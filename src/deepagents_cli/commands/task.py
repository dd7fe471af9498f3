"""Read what the agent is asked: the words that were typed, and what standard input holds."""

from __future__ import annotations

import select
import sys
from io import UnsupportedOperation
from typing import IO, Final

from deepagents_cli.errors import CommandError, Exit, complain

_MOST_CHARACTERS: Final = 1_000_000
_SECONDS: Final = 3.0


def read_task(typed: str | None, given: IO[str] | None) -> str | None:
    """Return the task followed by what standard input holds, or that alone; `None` when there is neither.

    Raises:
        CommandError: for input that is no text, or more than a model could read.
    """
    _check_text("the task", typed or "")
    context = _read_context(given, has_task=typed is not None)
    if not context.strip():
        return typed
    return f"{typed}\n\n<stdin>\n{context.rstrip()}\n</stdin>" if typed else context.strip()


def _read_context(given: IO[str] | None, *, has_task: bool) -> str:
    if given is None or given.closed or given.isatty():
        return ""
    if has_task and _is_silent(given):
        # Not left out: what is piped in may take a while, and an answer without it would be wrong.
        complain("waiting for the end of standard input; where nothing comes, add < /dev/null")
    try:
        context = given.read(_MOST_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise CommandError(f"standard input holds no text: {error}", Exit.USAGE) from error
    _check_text("standard input", context)
    if len(context) > _MOST_CHARACTERS:
        raise CommandError(
            f"standard input holds over {_MOST_CHARACTERS:,} characters; put it into a file, and name that",
            Exit.USAGE,
        )
    return context


def _check_text(what: str, text: str) -> None:
    # Where no language is set, Python hides bytes that are none of UTF-8 in half characters.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CommandError(f"{what} holds no text: {error}", Exit.USAGE) from error


def _is_silent(given: IO[str]) -> bool:
    if sys.platform == "win32":
        return False
    try:
        return not select.select([given], [], [], _SECONDS)[0]
    except (UnsupportedOperation, ValueError):
        return False
