"""Find lines in the bytes of one file, and report them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from deepagents._text import split_lines
from deepagents._values import valueclass
from deepagents.backends._bytes import BINARY_HEAD
from deepagents.backends.results import GrepMatch
from deepagents.errors import BackendError

if TYPE_CHECKING:
    import regex

_SECONDS: Final = 5.0
_LONGEST: Final = 10_000
_MOST_REPEATS: Final = 10_000
_REPEATS = re.compile(r"\{(\d+)")
# With the flag x, blanks between a brace and its number would hide repeats from the count.
_VERBOSE = re.compile(r"\(\?[A-Za-z0-9]*x")
# An escape, or a brace that counts nothing: `regex` would take `x{e}` as fuzzy, for `re` it is text.
_BRACE = re.compile(r"(\\(?:[NPp]\{|.))|\{(?!\d*,?\d*\})", re.DOTALL)

Numbered = Sequence[tuple[int, str]]


@valueclass
class Query:
    """Literal text, or a regular expression, to look for within single lines."""

    pattern: str
    expression: regex.Pattern[str] | None = None
    context: int = 0
    ends: float = 0.0

    @classmethod
    def of(cls, pattern: str, *, expression: bool = False, context: int = 0) -> Query:
        """Make a query; an expression may take five seconds from now, over all lines together.

        Raises:
            BackendError: `invalid_pattern`, when the regular expression is none.
        """
        return cls(pattern, _compile(pattern) if expression else None, context, time.monotonic() + _SECONDS)

    @property
    def needle(self) -> bytes | None:
        """The bytes that every file with a match holds, when that is known."""
        return None if self.expression else self.pattern.encode("utf-8", "surrogatepass")

    def fits(self, line: str) -> bool:
        """Return whether a line matches.

        Raises:
            BackendError: `timeout` or `too_large`, when the expression takes too much time or memory.
        """
        if self.expression is None:
            return self.pattern in line
        try:
            return self.expression.search(line, timeout=max(self.ends - time.monotonic(), 0.001)) is not None
        except TimeoutError as error:
            raise too_slow(self.pattern, _SECONDS) from error
        except MemoryError as error:
            text = f"The expression {self.pattern!r} takes too much memory on {len(line):,} characters."
            raise BackendError("too_large", f"{text} Simplify it.") from error


def _compile(pattern: str) -> regex.Pattern[str]:
    # `regex` and not `re`: it can give up after a time, and a model writes the expressions.
    import regex

    _check_cost(pattern)
    try:
        return regex.compile(_BRACE.sub(lambda found: found[1] or r"\{", pattern))
    except (regex.error, RecursionError) as error:
        raise BackendError("invalid_pattern", f"Invalid regular expression {pattern!r}: {error}") from error


def _check_cost(pattern: str) -> None:
    """Refuse what takes gigabytes to compile: counted repeats are unrolled, within others multiplied."""
    if len(pattern) > _LONGEST:
        raise _refusal(pattern, f"is longer than {_LONGEST} characters")
    if _VERBOSE.search(pattern):
        raise _refusal(pattern, "has the flag x, which is of no use within a line")
    if math.prod(int(count.lstrip("0")[:9] or 1) for count in _REPEATS.findall(pattern)) > _MOST_REPEATS:
        raise _refusal(pattern, f"repeats something more than {_MOST_REPEATS} times")


def too_slow(pattern: str, seconds: float) -> BackendError:
    """Make the error for an expression that took all its time."""
    return BackendError(
        "timeout", f"The expression {pattern!r} took longer than {seconds:.0f} s. Simplify it."
    )


def _refusal(pattern: str, why: str) -> BackendError:
    return BackendError("invalid_pattern", f"The regular expression {pattern[:80]!r} {why}. Simplify it.")


def matches_in(data: bytes, path: str, query: Query) -> Iterator[GrepMatch]:
    """Yield the matching lines of a text file, and nothing for any other."""
    needle = query.needle
    if (needle is not None and needle not in data) or b"\0" in data[:BINARY_HEAD]:
        return
    # A file in another encoding is still worth searching; its ASCII part matches.
    lines = split_lines(data.decode("utf-8", "replace"))
    for index in _matching(lines, query):
        around = _around(lines, index, query) if query.context else None
        yield make_match(path, index + 1, lines[index], around)


def make_match(path: str, line: int, text: str, around: tuple[Numbered, Numbered] | None) -> GrepMatch:
    """Make the match of a line, counted from 1, with the lines before and after it if they were asked for."""
    match = GrepMatch(path=path, line=line, text=text)
    if around is not None:
        match["context_before"] = [{"line": number, "text": text} for number, text in around[0]]
        match["context_after"] = [{"line": number, "text": text} for number, text in around[1]]
    return match


def _matching(lines: list[str], query: Query) -> Iterable[int]:
    if query.expression is not None:
        return (index for index, text in enumerate(lines) if query.fits(text))
    pattern = query.pattern
    return [index for index, text in enumerate(lines) if pattern in text]


def _around(lines: list[str], index: int, query: Query) -> tuple[Numbered, Numbered]:
    """Take the lines around one, but for those that match themselves."""
    first, last = max(0, index - query.context), index + 1 + query.context
    before = [(at + 1, lines[at]) for at in range(first, index) if not query.fits(lines[at])]
    after = [
        (at + 1, lines[at]) for at in range(index + 1, min(last, len(lines))) if not query.fits(lines[at])
    ]
    return before, after
