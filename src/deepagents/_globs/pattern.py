"""Compile a pattern, and tell early which directories a walk need not enter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

from deepagents._globs.segments import (
    ANY_DIRECTORIES,
    NOTHING,
    InvalidGlobPatternError,
    alternatives,
    anchor,
    any_name,
    any_of,
    name_expression,
    path_expression,
    plain_path,
)
from deepagents.errors import BackendError

Step: TypeAlias = re.Pattern[str] | None
"""A pattern that one name must match; `None` for any number of directories."""
EVERY_FILE: Final = "{*,.*}"
"""Matches every file at any depth, hidden ones included."""
_MOST_REACHED: Final = 4096
_SPECIAL = re.compile(r"[*?\[{}\\]")


class GlobPattern:
    """A compiled pattern. Paths are relative to the search root, without a leading slash.

    With `dots`, wildcards match a leading dot too. `expression` is the same as a regular expression, for `.`
    that is any character.
    """

    def __init__(self, pattern: str, *, dots: bool = False) -> None:
        self.pattern = pattern
        self._dots = dots
        self._by_name = "/" not in pattern
        self._alternatives = alternatives(pattern)
        self.expression = "|".join(path_expression(*each, dots) for each in self._groups) or NOTHING
        # Most patterns are such as `*.py`, for which comparing the end of a name is enough and cheap.
        self._ending = None if dots else _ending(pattern)
        self._names: dict[tuple[int, ...], Callable[[str], object]] = {}
        self._reached: dict[str, Sequence[set[int]]] = {}

    def __call__(self, path: str) -> bool:
        """Return whether the file at `path` matches."""
        if self._ending is not None:
            return path.endswith(self._ending) and path[path.rfind("/") + 1] != "."
        return self._match(path.rpartition("/")[2] if self._by_name else path) is not None

    matches = __call__

    @cached_property
    def _match(self) -> Callable[[str], object]:
        # At the first use: to compile a hundred names takes long, and rules ask one pattern seldom.
        return re.compile(self.expression, re.DOTALL).fullmatch

    def describe(self) -> dict[str, str | bool | int | None]:
        """Describe this pattern for a matcher elsewhere that knows nothing but regular expressions.

        `expression` must match, with `.` for any character, the whole name (`by_name`) or the whole path.
        All matches lie `below` a directory and at most `depth` names deep. Its groups `(?>` only save time.
        """
        is_deep = any(ANY_DIRECTORIES in each for each in self._alternatives)
        return {
            "expression": self.expression,
            "by_name": self._by_name,
            "below": "/" if self._by_name else anchor(self.pattern),
            "depth": None if self._by_name or is_deep else max(map(len, self._alternatives), default=0),
        }

    def names_in(self, directory: str) -> Callable[[str], object]:
        """Return what tells by its name alone, and fast, whether a file right in `directory` matches."""
        if self._by_name:
            return self._match
        steps = self._steps
        reached = self._reach(directory)
        last = tuple([at for at, each in enumerate(steps) if len(each) - 1 in reached[at]])
        if last not in self._names:
            wanted = "|".join(self._name_at(at) for at in last) or NOTHING
            self._names[last] = re.compile(wanted, re.DOTALL).fullmatch
        return self._names[last]

    def _name_at(self, at: int) -> str:
        last = self._steps[at][-1]
        return any_name(self._dots) if last is None else last.pattern

    def may_match_below(self, directory: str) -> bool:
        """Return whether a file anywhere below `directory` could match, so that a walk may skip it if not."""
        if self._by_name or not directory:
            return bool(self._alternatives)
        reached = zip(self._steps, self._reach(directory), strict=True)
        return any(position < len(steps) for steps, positions in reached for position in positions)

    def matches_all_below(self, directory: str) -> bool:
        """Return whether every file below `directory` that wildcards can match is surely matched."""
        if self._by_name:
            return False
        return any(
            all(step is None for step in steps[position:]) and position < len(steps)
            for steps, positions in zip(self._steps, self._reach(directory), strict=True)
            for position in positions
        )

    @property
    def anchored(self) -> list[tuple[str, list[str]]]:
        """Split each alternative into the path at or below which it matches, and the segments after that."""
        anchors = [(plain_path(segments, len(segments)), segments) for segments in self._alternatives]
        return [(path, segments[path.rstrip("/").count("/") :]) for path, segments in anchors]

    def _reach(self, directory: str) -> Sequence[set[int]]:
        """Return for each of the steps which may come next below a directory.

        A walk asks about each directory several times, right after the one above it.
        """
        missing: list[str] = []
        while directory and directory not in self._reached:
            missing.append(directory)
            directory = directory.rpartition("/")[0]
        found = self._reached.get(directory) or [add_skips({0}, steps) for steps in self._steps]
        if len(self._reached) > _MOST_REACHED:
            self._reached = {}
        for each in reversed(missing):
            name = each.rpartition("/")[2]
            found = [
                add_skips(set(advance(positions, name, steps, self._dots)), steps)
                for steps, positions in zip(self._steps, found, strict=True)
            ]
            self._reached[each] = found
        return found

    def below(self, directory: str) -> list[str]:
        """Return patterns that match, from `directory` on, what this one matches in there."""
        if self._by_name or not directory:
            return [self.pattern] if self._alternatives else []
        names = directory.split("/")
        found = dict[str, None]()
        for segments in self._alternatives:
            steps = [_compile_step(each, self._dots) for each in segments]
            positions = _find_positions(steps, names, self._dots)
            skips = {
                # What `**` may skip to is covered by the pattern that still begins with it.
                position + 1
                for position in positions
                if position < len(steps) and steps[position] is None
            }
            found |= {
                "/" + "/".join(segments[position:]): None for position in positions - skips - {len(steps)}
            }
        return sorted(found)

    @property
    def ways(self) -> list[tuple[list[Step], list[tuple[str, ...]]]]:
        """The steps of each way to match a whole path, and the segments that each step stands for."""
        return [
            (steps, [*((each,) for each in above), tuple(names) or (ANY_DIRECTORIES,)])
            for steps, (above, names) in zip(self._steps, self._groups, strict=True)
        ]

    @cached_property
    def _steps(self) -> list[list[Step]]:
        return [
            [
                *(_compile_step(each, self._dots) for each in above),
                re.compile(any_of(names, self._dots), re.DOTALL) if names else None,
            ]
            for above, names in self._groups
        ]

    @cached_property
    def _groups(self) -> list[tuple[tuple[str, ...], list[str]]]:
        """The names that each list of segments may end with; no names where it ends with `**`.

        A hundred names in the same directories are then tried in one go.
        """
        names: dict[tuple[str, ...], list[str]] = {}
        deep: list[tuple[tuple[str, ...], list[str]]] = []
        for *above, last in self._alternatives:
            if last == ANY_DIRECTORIES:
                deep.append((tuple(above), []))
            else:
                names.setdefault(tuple(above), []).append(last)
        return [*deep, *names.items()]


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> GlobPattern:
    """Compile a pattern.

    Raises:
        InvalidGlobPatternError: when the pattern has a `..` segment or expands beyond reason.
    """
    return GlobPattern(pattern)


def parse_glob(pattern: str) -> GlobPattern:
    """Compile a pattern on behalf of a backend.

    Raises:
        BackendError: `invalid_pattern`.
    """
    try:
        return compile_glob(pattern)
    except InvalidGlobPatternError as error:
        raise BackendError("invalid_pattern", str(error)) from error


def _ending(pattern: str) -> str | None:
    """Return the plain text that ends all names which a pattern such as `*.py` matches."""
    ending = pattern.removeprefix("*")
    plain = ending and pattern.startswith("*") and "/" not in ending and not _SPECIAL.search(ending)
    return ending if plain else None


def _compile_step(segment: str, dots: bool) -> Step:
    """Compile one segment."""
    return None if segment == ANY_DIRECTORIES else re.compile(name_expression(segment, dots), re.DOTALL)


def _find_positions(steps: Sequence[Step], names: Sequence[str], dots: bool) -> set[int]:
    """Walk the directory names through the segments; return which segments may come next."""
    positions = add_skips({0}, steps)
    for each in names:
        positions = add_skips(set(advance(positions, each, steps, dots)), steps)
    return positions


def advance(positions: set[int], directory: str, steps: Sequence[Step], dots: bool) -> Iterator[int]:
    """Yield which of the steps may come next below a directory, but for what `**` may skip to."""
    for position in positions - {len(steps)}:
        step = steps[position]
        if step is None and (dots or not directory.startswith(".")):
            yield position
        elif step is not None and step.fullmatch(directory):
            yield position + 1


def add_skips(positions: set[int], steps: Sequence[Step]) -> set[int]:
    """Add what `**` may skip to."""
    found = set(positions)
    for position in sorted(positions):
        while position < len(steps) - 1 and steps[position] is None:
            position += 1
            found.add(position)
    return found
