"""Bound and clean the values that pass between a program and its tools.

A program that holds one long text a thousand times takes little memory; written out, it would take all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from reprlib import Repr
from typing import Any, Final, cast

MOST_WRITTEN: Final = 10_000_000
"""How many characters a value may take when it is written out."""
_OF_A_VALUE: Final = 10
_shortening = Repr()
_shortening.maxstring = _shortening.maxother = _shortening.maxlong = 120


def is_too_large(value: Any) -> bool:
    """Return whether a value would take more than ten million characters, without writing it out."""
    room = MOST_WRITTEN
    left: list[Any] = [value]
    while left and room >= 0:
        each = left.pop()
        room -= _OF_A_VALUE
        if isinstance(each, str | bytes):
            room -= len(each)
        elif isinstance(each, int):
            room -= each.bit_length() // 4
        else:
            inside = _find_inside(each)
            # Those that are counted later need room too, and a long list of them would take it here.
            if len(inside) * _OF_A_VALUE > room:
                return True
            left += inside
    return room < 0


def write_short(value: Any) -> str:
    """Write a value in a few characters, however large it is."""
    return _shortening.repr(value)


def with_whole_characters(value: Any) -> Any:
    """Return a value of JSON without halves of surrogate pairs, which the interpreter does not take."""
    if isinstance(value, str):
        return value.encode(errors="surrogatepass").decode(errors="replace")
    if isinstance(value, list | tuple):
        return [with_whole_characters(each) for each in cast("Iterable[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return {with_whole_characters(key): with_whole_characters(each) for key, each in pairs}
    return value


def _find_inside(value: Any) -> list[Any]:
    # What the program made of a class of its own comes with its attributes.
    held: Any = getattr(value, "attributes", value)
    if isinstance(held, Mapping):
        pairs = cast("Mapping[Any, Any]", held)
        return [*pairs, *pairs.values()]
    return list(cast("Iterable[Any]", held)) if isinstance(held, list | tuple | set | frozenset) else []
