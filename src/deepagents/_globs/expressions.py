"""Translate segments into regular expressions that never look back without bound.

A model writes the patterns, and a matcher that tries every way to share a name among many stars takes time
that grows without limit. Atomic groups `(?>` keep the first way that fits, which is always good enough here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from deepagents._globs.segments import ANY_DIRECTORIES

NOTHING: Final = r"(?!)"
"""Matches nothing."""
# As in shells: wildcards pass over hidden files unless these are named.
_NOT_HIDDEN: Final = r"(?!\.)[^/]+"
_BRACKET = re.compile(r"\[(?P<negated>[!^]?)(?P<body>\]?(?:\\.|[^\]\\])*)\]", re.DOTALL)
_RANGE = re.compile(r"(?P<low>\\.|.)(?:-(?P<high>\\.|.))?", re.DOTALL)


def path_expression(segments: Sequence[str], dots: bool) -> str:
    """Translate segments; a run between two `**` is taken where it first fits, as good as any later one."""
    runs = list(_runs(segments))
    skipped = rf"(?:{any_name(dots)}/)*"
    last = (
        skipped + any_name(dots)
        if not runs[-1]
        else "/".join(name_expression(each, dots) for each in runs[-1])
    )
    if len(runs) == 1:
        return last
    first = "".join(name_expression(each, dots) + "/" for each in runs[0])
    middle = "".join(
        rf"(?>{skipped}?{''.join(name_expression(each, dots) + '/' for each in run)})"
        for run in runs[1:-1]
        if run
    )
    return first + middle + (last if not runs[-1] else f"{skipped}?{last}")


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


def _pieces(segment: str) -> Iterator[str]:
    """Yield the translation of what stands between the stars; each character of it matches exactly one."""
    piece = ""
    at = 0
    while at < len(segment):
        char = segment[at]
        bracket = _BRACKET.match(segment, at) if char == "[" else None
        if char == "*":
            yield piece
            piece = ""
        elif bracket:
            piece += _character_class(bracket)
            at = bracket.end() - 1
        elif char == "\\" and at + 1 < len(segment):
            at += 1
            piece += re.escape(segment[at])
        else:
            piece += "[^/]" if char == "?" else re.escape(char)
        at += 1
    yield piece


def _character_class(bracket: re.Match[str]) -> str:
    ranges: list[str] = []
    for item in _RANGE.finditer(bracket["body"]):
        low, high = item["low"][-1], (item["high"] or item["low"])[-1]
        if low <= high:
            ranges.append(f"{re.escape(low)}-{re.escape(high)}")
    if not ranges:
        return "[^/]" if bracket["negated"] else NOTHING
    # A negated class would match the slash, and so reach into the next directory.
    return rf"(?!/)[{'^' if bracket['negated'] else ''}{''.join(ranges)}]"
