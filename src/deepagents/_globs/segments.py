"""A pattern as text becomes alternatives without braces, each a list of segments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

import bracex

MAX_EXPANSIONS: Final = 1000
ANY_DIRECTORIES: Final = "**"
_LONGEST: Final = 4096
_SLASHES = re.compile(r"[/\\]")
_WILDCARD = re.compile(r"[*?\[{\\]")


class InvalidGlobPatternError(ValueError):
    """A glob pattern that is refused."""


def alternatives(pattern: str) -> list[list[str]]:
    """Return what a pattern stands for; nothing when it can match no file.

    Raises:
        InvalidGlobPatternError: when the pattern has a `..` segment or expands beyond reason.
    """
    return [found for each in _expand(pattern) if (found := _segments(each))]


def anchor(pattern: str) -> str:
    """Return the longest leading directory of a pattern that holds no wildcard, `/` when there is none."""
    segments = pattern.split("/")
    return plain_path(segments, len(segments) - 1)


def plain_path(segments: Sequence[str], most: int) -> str:
    """Join the first segments, up to `most` and to the first that holds a wildcard."""
    plain = takewhile(lambda each: not _WILDCARD.search(each), segments[:most])
    return "/" + "/".join(each for each in plain if each not in ("", "."))


def _expand(pattern: str) -> Sequence[str]:
    if len(pattern) > _LONGEST:
        raise InvalidGlobPatternError(f"Invalid glob pattern: {pattern[:60]!r}... is over {_LONGEST} long")
    if ".." in _SLASHES.split(pattern):
        raise _traversal(pattern)
    try:
        # With a limit: a few nested braces stand for millions of patterns.
        expanded = list(bracex.iexpand(pattern, keep_escapes=True, limit=MAX_EXPANSIONS))
    except bracex.ExpansionLimitException as error:
        raise InvalidGlobPatternError(
            f"Invalid glob pattern: {pattern!r} has more than {MAX_EXPANSIONS} expansions; use fewer braces"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InvalidGlobPatternError(f"Invalid glob pattern: {pattern!r} nests too deeply") from error
    # Braces can put a `..` together that the pattern does not show, such as `{.,x}./a`.
    if any(".." in _SLASHES.split(each) for each in expanded):
        raise _traversal(pattern)
    return expanded


def _traversal(pattern: str) -> InvalidGlobPatternError:
    return InvalidGlobPatternError(
        f"Path traversal not allowed: pattern {pattern!r} has a '..' segment. Search from a path instead."
    )


def _segments(pattern: str) -> list[str]:
    """Split a pattern without braces; nothing when it can match no file."""
    if "/" not in pattern:
        return [pattern] if pattern else []
    names = [part for part in pattern.split("/") if part not in ("", ".")]
    # `**/**` means no more than `**`, and each further one multiplies what must be tried.
    parts = [each for at, each in enumerate(names) if names[at : at + 2] != [ANY_DIRECTORIES] * 2]
    if not parts or (pattern.endswith(("/", "/.")) and parts[-1] != ANY_DIRECTORIES):
        return []
    return parts
