"""Expand a pattern into segments, and translate these into expressions that never look back without bound.

A model writes the patterns, and a matcher that tries every way to share a name among many stars takes time
that grows without limit. Atomic groups `(?>` keep the first way that fits, which is always good enough here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

import bracex

MAX_EXPANSIONS: Final = 1000
ANY_DIRECTORIES: Final = "**"
NOTHING: Final = r"(?!)"
"""Matches nothing."""
# As in shells: wildcards pass over hidden files unless these are named.
_NOT_HIDDEN: Final = r"(?!\.)[^/]+"
_BRACKET = re.compile(r"\[(?P<negated>[!^]?)(?P<body>\]?(?:\\.|[^\]\\])*)\]", re.DOTALL)
_RANGE = re.compile(r"(?P<low>\\.|.)(?:-(?P<high>\\.|.))?", re.DOTALL)
_LONGEST: Final = 4096
_SLASHES = re.compile(r"[/\\]")
_WILDCARD = re.compile(r"[*?\[{\\]")
_IN_ANY_CASE = re.compile(r"(?:\[([a-z])(?!\1)(?ai:\1)\])+")
"""Names such as `[eE][nN][vV]`, of which rules have hundreds."""


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


def path_expression(above: Sequence[str], names: Sequence[str], dots: bool) -> str:
    """Translate segments that end with one of these names, or with `**` where there are none.

    A run between two `**` is taken where it first fits, as good as any later one.
    """
    runs = list(_runs(above if names else [*above, ANY_DIRECTORIES]))
    skipped = rf"(?:{any_name(dots)}/)*"
    ending = "".join(name_expression(each, dots) + "/" for each in runs[-1])
    last = ending + any_of(names, dots) if names else skipped + any_name(dots)
    if len(runs) == 1:
        return last
    first = "".join(name_expression(each, dots) + "/" for each in runs[0])
    middle = "".join(
        rf"(?>{skipped}?{''.join(name_expression(each, dots) + '/' for each in run)})"
        for run in runs[1:-1]
        if run
    )
    return first + middle + (f"{skipped}?{last}" if names else last)


def any_of(names: Sequence[str], dots: bool) -> str:
    """Return what matches any of the names."""
    wanted = [name_expression(each, dots) for each in names]
    return wanted[0] if len(wanted) == 1 else f"(?:{'|'.join(wanted)})"


def _runs(segments: Sequence[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for each in segments:
        if each == ANY_DIRECTORIES:
            yield run
            run = []
        else:
            run.append(each)
    yield run


def any_name(dots: bool) -> str:
    """Return what matches any one name."""
    return "[^/]+" if dots else _NOT_HIDDEN


def name_expression(segment: str, dots: bool) -> str:
    """Translate one segment; `*` between two fixed pieces stops at the first fit."""
    pieces = list(_pieces(segment))
    may_hide = dots or segment.startswith((".", r"\."))
    start = "" if may_hide else r"(?!\.)"
    if len(pieces) == 1:
        return start + pieces[0]
    middle = "".join(rf"(?>[^/]*?{piece})" for piece in pieces[1:-1] if piece)
    return rf"{start}{pieces[0]}{middle}[^/]*{pieces[-1]}"


def edges(segment: str) -> tuple[str, str]:
    """Return what the first character, and the last two, must match of each name that a segment matches."""
    characters = [*_characters(segment)]
    tail = [*takewhile(bool, reversed(characters))][1::-1]
    return characters[0] or ".", ".?" * (2 - len(tail)) + "".join(tail)


def _pieces(segment: str) -> Iterator[str]:
    """Yield the translation of what stands between the stars; each character of it matches exactly one."""
    piece = ""
    for each in _characters(segment, together=True):
        if each:
            piece += each
        else:
            yield piece
            piece = ""
    yield piece


def _characters(segment: str, *, together: bool = False) -> Iterator[str]:
    """Yield what one character must match, for each, or several of them together; nothing for a star."""
    at = 0
    while at < len(segment):
        char = segment[at]
        letters = _IN_ANY_CASE.match(segment, at) if together and char == "[" else None
        bracket = _BRACKET.match(segment, at) if char == "[" else None
        if char == "*":
            yield ""
        elif letters:
            # The same for several letters in one group, which is far faster to compile than a class for each.
            yield f"(?ai:{letters[0][1::4]})"
            at = letters.end() - 1
        elif bracket:
            yield _character_class(bracket)
            at = bracket.end() - 1
        elif char == "\\" and at + 1 < len(segment):
            at += 1
            yield re.escape(segment[at])
        else:
            yield "[^/]" if char == "?" else re.escape(char)
        at += 1


def _character_class(bracket: re.Match[str]) -> str:
    bounds = [
        (low, high)
        for item in _RANGE.finditer(bracket["body"])
        if (low := item["low"][-1]) <= (high := (item["high"] or item["low"])[-1])
    ]
    if not bounds:
        return "[^/]" if bracket["negated"] else NOTHING
    ranges = (re.escape(low) + (f"-{re.escape(high)}" if low < high else "") for low, high in bounds)
    # What matches the slash would reach into the next directory. Rules hold hundreds that do not.
    has_slash = bool(bracket["negated"]) or any(low <= "/" <= high for low, high in bounds)
    return rf"{'(?!/)' * has_slash}[{'^' if bracket['negated'] else ''}{''.join(ranges)}]"
