"""Walk directories through many patterns at once: to all of them, most directories are the same place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

from deepagents._globs.pattern import GlobPattern, add_skips, advance
from deepagents._globs.segments import ANY_DIRECTORIES, any_of, edges

Reached: TypeAlias = tuple[frozenset[int], ...]
# Who names directories could make ever new places of a pattern with many stars, and ever new ends of names.
_MOST_PLACES: Final = 4096
_MOST_TESTS: Final = 4096
_NONE: Final = frozenset[str]().__contains__


class Names:
    """Tells whether any of many patterns matches a name.

    Few or none can match what begins and ends as it does, and trying all of a hundred takes long.
    """

    def __init__(self, segments: Sequence[str]) -> None:
        self._segments = [
            (segment, *(re.compile(each, re.DOTALL).fullmatch for each in edges(segment)))
            for segment in segments
        ]
        self._tests: dict[str, Callable[[str], object]] = {}

    def __call__(self, name: str) -> object:
        """Match one name."""
        return (self._tests.get(name[:1] + name[-2:]) or self._test_for(name[:1], name[-2:]))(name)

    def _test_for(self, start: str, end: str) -> Callable[[str], object]:
        fitting = [each for each, starts, ends in self._segments if ends(end) and starts(start)]
        test = re.compile(any_of(fitting, True), re.DOTALL).fullmatch if fitting else _NONE
        if len(self._tests) > _MOST_TESTS:
            self._tests = {}
        self._tests[start + end] = test
        return test


# The same names are in the rules of many agents.
_names_of = lru_cache(maxsize=256)(Names)


class Place:
    """All directories from which the patterns go on alike; `known` is what was found out of them."""

    def __init__(self, places: Places, reached: Reached) -> None:
        self._places = places
        self._reached = reached
        self._names: dict[frozenset[int], Names] = {}
        self.known: dict[object, bool] = {}

    def names_of(self, patterns: frozenset[int]) -> Names:
        """Return what tells by its name alone whether any of these patterns matches what is right in here."""
        if patterns not in self._names:
            self._names[patterns] = self._places.names_at(self._reached, patterns)
        return self._names[patterns]

    def enter(self, name: str) -> Place:
        """Return the place of a directory in here."""
        return self._places.enter(self._reached, name) if self._steps(name) else self._unnamed

    @cached_property
    def _steps(self) -> Names:
        return self._places.steps_at(self._reached)

    @cached_property
    def _unnamed(self) -> Place:
        """What a directory leads to that no pattern names: only a star alone matches an empty name."""
        return self._places.enter(self._reached, "")


class Places:
    """The places to which directories belong, for patterns whose wildcards match a leading dot."""

    def __init__(self, globs: Sequence[GlobPattern]) -> None:
        self._ways = [(at, *way) for at, each in enumerate(globs) for way in each.ways]
        self._found: dict[Reached, Place] = {}
        self._of_paths: dict[str, Place] = {}

    def at(self, directory: str) -> Place:
        """Return the place of a path without a leading slash; a walk asks right after the one above it."""
        # Threads may ask at once, and one of them begin anew.
        known = self._of_paths
        missing: list[str] = []
        above = directory
        while above and above not in known:
            missing.append(above)
            above = above.rpartition("/")[0]
        place = known[above] if above else self._intern([{0} for _ in self._ways])
        if len(known) > _MOST_PLACES:
            known = self._of_paths = {}
        for each in reversed(missing):
            place = place.enter(each.rpartition("/")[2])
            known[each] = place
        return place

    def enter(self, reached: Reached, name: str) -> Place:
        """Return where a directory leads."""
        return self._intern(
            [
                set(advance(set(positions), name, steps, True))
                for (_, steps, _), positions in zip(self._ways, reached, strict=True)
            ]
        )

    def _intern(self, positions: Iterable[set[int]]) -> Place:
        reached = tuple(
            frozenset(add_skips(each, steps)) - {len(steps)}
            for (_, steps, _), each in zip(self._ways, positions, strict=True)
        )
        if len(self._found) > _MOST_PLACES:
            self._found = {}
        found = self._found.get(reached)
        return found or self._found.setdefault(reached, Place(self, reached))

    def names_at(self, reached: Reached, patterns: frozenset[int]) -> Names:
        """Return what matches the names with which these patterns may end."""
        found = dict[str, None]()
        for (at, steps, segments), positions in zip(self._ways, reached, strict=True):
            if at in patterns and len(steps) - 1 in positions:
                found |= dict.fromkeys(segments[-1])
        return _names_of(tuple(found))

    def steps_at(self, reached: Reached) -> Names:
        """Return what matches the names of directories that lead on."""
        found = dict[str, None]()
        for (_, _, segments), positions in zip(self._ways, reached, strict=True):
            for position in positions - {len(segments) - 1}:
                if segments[position] != (ANY_DIRECTORIES,):
                    found |= dict.fromkeys(segments[position])
        return _names_of(tuple(found))
