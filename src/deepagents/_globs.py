"""One glob dialect, for `glob`, the filter of `grep`, and permissions.

A pattern without `/` matches the name of a file at any depth. With `/` it matches the whole path below the
search root, where `**` stands for any number of directories. `*`, `?` and `**` do not match a leading dot; a
pattern segment that starts with a dot does. `{a,b}`, `[abc]`, `[!abc]`, escapes work as usual; case counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Final

import bracex

from deepagents.errors import BackendError

MAX_EXPANSIONS: Final = 1000
_LONGEST: Final = 4096
EVERY_FILE: Final = "{*,.*}"
"""Matches every file at any depth, hidden ones included."""
_ANY_DIRECTORIES: Final = "**"
_NOT_HIDDEN = r"(?!\.)[^/]+"
_NOTHING = r"(?!)"
_SLASHES = re.compile(r"[/\\]")
_SPECIAL = re.compile(r"[*?\[{}\\]")
_WILDCARD = re.compile(r"[*?\[{\\]")
_BRACKET = re.compile(r"\[(?P<negated>[!^]?)(?P<body>\]?(?:\\.|[^\]\\])*)\]", re.DOTALL)
_RANGE = re.compile(r"(?P<low>\\.|.)(?:-(?P<high>\\.|.))?", re.DOTALL)


class InvalidGlobPatternError(ValueError):
    """A glob pattern that is refused."""


class Glob:
    """A compiled pattern. Paths are relative to the search root, without a leading slash.

    With `dots`, wildcards match a leading dot too. `expression` is the same as a regular expression, for `.`
    that is any character.
    """

    def __init__(self, pattern: str, *, dots: bool = False) -> None:
        self.pattern = pattern
        self._dots = dots
        self._by_name = "/" not in pattern
        self._alternatives = [found for each in _expand(pattern) if (found := _segments(each))]
        self.expression = "|".join(_regex(each, dots) for each in self._alternatives) or _NOTHING
        self._match = re.compile(self.expression, re.DOTALL).fullmatch
        self._ending = None if dots else _ending(pattern)
        self._names: dict[frozenset[re.Pattern[str] | None], Callable[[str], object]] = {}

    def __call__(self, path: str) -> bool:
        """Tell whether the file at `path` matches."""
        if self._ending is not None:
            return path.endswith(self._ending) and path[path.rfind("/") + 1] != "."
        return self._match(path.rpartition("/")[2] if self._by_name else path) is not None

    matches = __call__

    def compiled(self) -> dict[str, str | bool | int | None]:
        """Describe this pattern for a matcher elsewhere that knows nothing but regular expressions.

        `expression` must match, with `.` for any character, the whole name (`by_name`) or the whole path.
        All matches lie `below` a directory and at most `depth` names deep. Its groups `(?>` only save time.
        """
        is_deep = any(_ANY_DIRECTORIES in each for each in self._alternatives)
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
        names = directory.split("/") if directory else []
        last = frozenset(steps[-1] for steps in self._steps if len(steps) - 1 in self._places(steps, names))
        if last not in self._names:
            wanted = (
                "|".join(_name(self._dots) if each is None else each.pattern for each in last) or _NOTHING
            )
            self._names[last] = re.compile(wanted, re.DOTALL).fullmatch
        return self._names[last]

    def may_match_below(self, directory: str) -> bool:
        """Tell whether a file anywhere below `directory` could match, so that a walk may skip it if not."""
        if self._by_name or not directory:
            return bool(self._alternatives)
        names = directory.split("/")
        return any(place < len(steps) for steps in self._steps for place in self._places(steps, names))

    def matches_all_below(self, directory: str) -> bool:
        """Tell whether every file below `directory` that wildcards can match is surely matched."""
        if self._by_name:
            return False
        names = directory.split("/") if directory else []
        return any(
            all(step is None for step in steps[place:]) and place < len(steps)
            for steps in self._steps
            for place in self._places(steps, names)
        )

    @property
    def anchored(self) -> list[tuple[str, list[str]]]:
        """Split each alternative into the path at or below which it matches, and the segments after that."""
        anchors = [(_anchor(segments, len(segments)), segments) for segments in self._alternatives]
        return [(path, segments[path.rstrip("/").count("/") :]) for path, segments in anchors]

    def _places(self, steps: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> set[int]:
        return _places(steps, names, self._dots)

    def below(self, directory: str) -> list[str]:
        """Return patterns that match, from `directory` on, what this one matches in there."""
        if self._by_name or not directory:
            return [self.pattern] if self._alternatives else []
        names = directory.split("/")
        found = dict[str, None]()
        for segments, steps in zip(self._alternatives, self._steps, strict=True):
            places = self._places(steps, names)
            skips = {place + 1 for place in places if place < len(steps) and steps[place] is None}
            found |= {"/" + "/".join(segments[place:]): None for place in places - skips - {len(steps)}}
        return sorted(found)

    @cached_property
    def _steps(self) -> list[list[re.Pattern[str] | None]]:
        return [[_step(each, self._dots) for each in segments] for segments in self._alternatives]


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> Glob:
    """Compile a pattern.

    Raises:
        InvalidGlobPatternError: when the pattern has a `..` segment or expands beyond reason.
    """
    return Glob(pattern)


def checked_glob(pattern: str) -> Glob:
    """Compile a pattern on behalf of a backend.

    Raises:
        BackendError: `invalid_pattern`.
    """
    try:
        return compile_glob(pattern)
    except InvalidGlobPatternError as error:
        raise BackendError("invalid_pattern", str(error)) from error


def anchor(pattern: str) -> str:
    """Return the longest leading directory of a pattern that holds no wildcard, `/` when there is none."""
    segments = pattern.split("/")
    return _anchor(segments, len(segments) - 1)


def _anchor(segments: Sequence[str], most: int) -> str:
    plain = takewhile(lambda each: not _WILDCARD.search(each), segments[:most])
    return "/" + "/".join(each for each in plain if each not in ("", "."))


def _ending(pattern: str) -> str | None:
    """Return the plain text that ends all names which a pattern such as `*.py` matches."""
    ending = pattern.removeprefix("*")
    plain = ending and pattern.startswith("*") and "/" not in ending and not _SPECIAL.search(ending)
    return ending if plain else None


def _expand(pattern: str) -> Sequence[str]:
    if len(pattern) > _LONGEST:
        raise InvalidGlobPatternError(f"Invalid glob pattern: {pattern[:60]!r}... is over {_LONGEST} long")
    if ".." in _SLASHES.split(pattern):
        raise _traversal(pattern)
    try:
        expanded = list(bracex.iexpand(pattern, keep_escapes=True, limit=MAX_EXPANSIONS))
    except bracex.ExpansionLimitException as error:
        raise InvalidGlobPatternError(
            f"Invalid glob pattern: {pattern!r} has more than {MAX_EXPANSIONS} expansions; use fewer braces"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InvalidGlobPatternError(f"Invalid glob pattern: {pattern!r} nests too deeply") from error
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
    parts = [each for at, each in enumerate(names) if names[at : at + 2] != [_ANY_DIRECTORIES] * 2]
    if not parts or (pattern.endswith(("/", "/.")) and parts[-1] != _ANY_DIRECTORIES):
        return []
    return parts


def _regex(segments: Sequence[str], dots: bool) -> str:
    """Translate segments; a run between two `**` is taken at its first place, as good as any later one."""
    runs = list(_runs(segments))
    skipped = rf"(?:{_name(dots)}/)*"
    last = skipped + _name(dots) if not runs[-1] else "/".join(_segment(each, dots) for each in runs[-1])
    if len(runs) == 1:
        return last
    first = "".join(_segment(each, dots) + "/" for each in runs[0])
    middle = "".join(
        rf"(?>{skipped}?{''.join(_segment(each, dots) + '/' for each in run)})" for run in runs[1:-1] if run
    )
    return first + middle + (last if not runs[-1] else f"{skipped}?{last}")


def _runs(segments: Sequence[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for each in segments:
        if each == _ANY_DIRECTORIES:
            yield run
            run = []
        else:
            run.append(each)
    yield run


def _name(dots: bool) -> str:
    return "[^/]+" if dots else _NOT_HIDDEN


def _step(segment: str, dots: bool) -> re.Pattern[str] | None:
    return None if segment == _ANY_DIRECTORIES else re.compile(_segment(segment, dots), re.DOTALL)


def _segment(segment: str, dots: bool) -> str:
    """Translate one segment; `*` between two fixed pieces stops at the first place that fits."""
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
        return "[^/]" if bracket["negated"] else _NOTHING
    return rf"(?!/)[{'^' if bracket['negated'] else ''}{''.join(ranges)}]"


def _places(steps: Sequence[re.Pattern[str] | None], names: Sequence[str], dots: bool) -> set[int]:
    """Walk the directory names through the segments; return which segments may come next."""
    places = _with_skips({0}, steps)
    for each in names:
        places = _with_skips(set(_after(places, each, steps, dots)), steps)
    return places


def _after(
    places: set[int], directory: str, steps: Sequence[re.Pattern[str] | None], dots: bool
) -> Iterator[int]:
    for place in places - {len(steps)}:
        step = steps[place]
        if step is None and (dots or not directory.startswith(".")):
            yield place
        elif step is not None and step.fullmatch(directory):
            yield place + 1


def _with_skips(places: set[int], steps: Sequence[re.Pattern[str] | None]) -> set[int]:
    found = set(places)
    for place in sorted(places):
        while place < len(steps) - 1 and steps[place] is None:
            place += 1
            found.add(place)
    return found
