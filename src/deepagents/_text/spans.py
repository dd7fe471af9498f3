"""Put new lines into a text, in several places at once, or tell all that is wrong with them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

from deepagents._text.endings import line_ending
from deepagents._text.lines import split_keeping_ends
from deepagents._values import valueclass
from deepagents.errors import BackendError, CodedError, ToolFailure

_MOST_PROBLEMS: Final = 5


class Problems:
    """Collect what is wrong with the changes of one call, as a model should read all of it at once."""

    def __init__(self, ending: str = "") -> None:
        self._found: list[CodedError] = []
        self._ending = ending

    @contextmanager
    def noting(self, whose: str = "") -> Generator[None]:
        """Note the failure of a block and go on behind it; `whose` it is stands before it."""
        try:
            yield
        except (BackendError, ToolFailure) as problem:
            label = f"{whose}: " if whose and whose not in problem.text else ""
            self._found.append(BackendError(problem.code, f"{label}{problem.text}"))

    def report(self) -> None:
        """Raise what was noted as one `BackendError`, with the first code; return if there is nothing."""
        if self._found:
            texts = [each.text for each in self._found[:_MOST_PROBLEMS]]
            raise BackendError(self._found[0].code, "\n".join([*texts, self._ending]).rstrip())


@valueclass
class Span:
    """New lines for those from `start` to before `end`, counted from 0; `by` is the number of the change."""

    start: int
    end: int
    new: Sequence[str]
    by: int


def find_overlaps(spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of changes of the same lines, where spans are in the order of their lines."""
    for one, other in pairwise(spans):
        if other.start < one.end:
            yield (min(one.by, other.by), max(one.by, other.by))


def put_spans(content: str, spans: Sequence[Span]) -> str:
    """Return a text with new lines in their places, which are in order and do not overlap.

    Line ends are kept, and new lines get those that stand there.
    """
    old = split_keeping_ends(content)
    pieces: list[str] = []
    at = 0
    for span in spans:
        near = old[span.start if span.start < span.end else span.start - 1] if old else ""
        ending = line_ending(content) or near[len(near.rstrip("\r\n")) :] or "\n"
        pieces += [*old[at : span.start], *(line + ending for line in span.new)]
        at = span.end
    pieces += old[at:]
    if not old or not pieces or old[-1][-1] in "\r\n":
        return "".join(pieces)
    # The file ends without a newline, and still does.
    ending = line_ending(content) or "\n"
    ended = [each if each[-1] in "\r\n" else each + ending for each in pieces]
    last = ended.pop().rstrip("\r\n")
    return "".join([*ended, last])
