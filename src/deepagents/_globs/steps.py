"""Directory names walk through segments, to tell early what a walk need not enter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from deepagents._globs.expressions import name_expression
from deepagents._globs.segments import ANY_DIRECTORIES

Step: TypeAlias = re.Pattern[str] | None
"""What one name must match; `None` for any number of directories."""


def step(segment: str, dots: bool) -> Step:
    """Compile one segment."""
    return None if segment == ANY_DIRECTORIES else re.compile(name_expression(segment, dots), re.DOTALL)


def places_after(steps: Sequence[Step], names: Sequence[str], dots: bool) -> set[int]:
    """Walk the directory names through the segments; return which segments may come next."""
    places = _with_skips({0}, steps)
    for each in names:
        places = _with_skips(set(_after(places, each, steps, dots)), steps)
    return places


def _after(places: set[int], directory: str, steps: Sequence[Step], dots: bool) -> Iterator[int]:
    for place in places - {len(steps)}:
        step = steps[place]
        if step is None and (dots or not directory.startswith(".")):
            yield place
        elif step is not None and step.fullmatch(directory):
            yield place + 1


def _with_skips(places: set[int], steps: Sequence[Step]) -> set[int]:
    found = set(places)
    for place in sorted(places):
        while place < len(steps) - 1 and steps[place] is None:
            place += 1
            found.add(place)
    return found
