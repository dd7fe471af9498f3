"""When a context is compacted, and where it is cut: numbers in, numbers out."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, TypeAlias

from deepagents.middleware.summarization.sizes import (
    Keep,
    Size,
    Trigger,
)

FULL: Final = 0.97
"""The share of a window up to which a context is let grow."""
LEAST_GAIN: Final = 0.05
"""The share of a window that is worth a change of the context."""
_SPACING: Final = 0.15
_LEAST_SHARE: Final = 0.25
_KEPT_WITHOUT_WINDOW: Final = Size("messages", 20)

PieceKind: TypeAlias = Literal["summary", "human", "model", "tool", "other"]


@dataclass(frozen=True, slots=True)
class Load:
    """How large a context is: its tokens, its messages, and the window it must fit, where that is known."""

    tokens: int
    messages: int
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Since:
    """How large a context was right after it was last compacted."""

    tokens: int
    messages: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A message, as far as cutting goes: its kind, its tokens, the calls it makes, the call it answers.

    Kind `other` behind tool results belongs to them, such as a message that shows their media.
    """

    kind: PieceKind
    tokens: int
    calls: tuple[str, ...] = ()
    answers: str | None = None


def is_due(trigger: Trigger, load: Load, since: Since | None = None) -> bool:
    """Tell whether a context is to be compacted.

    After a compaction a threshold stands at least 15 % of the window above what was left, up to 97 % of it
    unless more than that was left: otherwise much that is kept would bring a summary with every step.
    """
    return _any_clause(trigger, load, lambda size: _spaced(size, load.window, since))


def is_worth_asking(trigger: Trigger, load: Load) -> bool:
    """Tell whether to compact at someone's wish: from half of what triggers it on."""

    def half(size: Size) -> int | None:
        whole = size.threshold(load.window)
        return None if whole is None else max(1, whole // 2)

    return _any_clause(trigger, load, half)


def least_gain(trigger: Trigger, window: int | None) -> int:
    """Return the tokens that a compaction must evict: 5 % of the window; 0 if messages alone trigger it."""
    sizes = [size for clause in trigger.clauses for size in clause if size.metric != "messages"]
    return min((int(LEAST_GAIN * size.span(window)) for size in sizes), default=0)


def cut(
    pieces: Sequence[Piece],
    keep: Keep,
    *,
    window: int | None,
    fixed: int,
    least: int = 0,
    forced: bool = False,
) -> int:
    """Return the index of the first piece to keep; 0 when nothing is worth evicting.

    Calls stay with their results, and results that the model has not seen stay. What is kept leaves room to
    grow beside the `fixed` tokens of system prompt and tools. Less than `least` tokens (see `least_gain`)
    are not worth it. After a refusal, `forced`, at least half goes, whatever it gains.
    """
    context = _Context.of(pieces)
    room = None if window is None else int((FULL - _SPACING) * window) - fixed
    if forced:
        room = min(context.sums[0] // 2, context.sums[0] if room is None else room)
    size = keep.size if keep.size.threshold(window) else _KEPT_WITHOUT_WINDOW
    many = size.threshold(window) or 0
    if size.metric == "messages":
        found = context.keeping_messages(many, least)
        if room is not None and context.sums[found] > room:
            found = context.keeping_tokens(room)
    else:
        found = context.keeping_tokens(many if room is None else min(many, room))
    return found if context.gains(found, 0 if forced else least) else 0


@dataclass(frozen=True, slots=True)
class _Context:
    """Pieces, the indices where they may be parted, and for each index the tokens from there on."""

    pieces: Sequence[Piece]
    boundaries: Sequence[int]
    sums: Sequence[int]
    summaries: int

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> _Context:
        sums = [0, *accumulate(piece.tokens for piece in reversed(pieces))][::-1]
        summaries = next((at for at, piece in enumerate(pieces) if piece.kind != "summary"), len(pieces))
        return cls(pieces, _boundaries(pieces), sums, summaries)

    def keeping_tokens(self, most: int) -> int:
        """Return the first boundary from which on there are no more tokens; the last one if there is none."""
        if self.sums[0] <= most or not self.boundaries:
            return 0
        at = bisect_left(self.boundaries, -most, key=lambda index: -self.sums[index])
        return self.boundaries[min(at, len(self.boundaries) - 1)]

    def keeping_messages(self, least_kept: int, least: int) -> int:
        """Return the last boundary that keeps so many messages, or the next if that evicts too little."""
        wanted = len(self.pieces) - least_kept
        after = bisect_left(self.boundaries, wanted + 1)
        if wanted <= self.summaries or not after:
            return 0
        before = self.boundaries[after - 1]
        evicted = before - self.summaries
        if evicted >= _LEAST_SHARE * (wanted - self.summaries) and self.gains(before, least):
            return before
        return self.boundaries[after] if after < len(self.boundaries) else before

    def gains(self, index: int, least: int) -> bool:
        """Tell whether keeping from there on evicts so many tokens, and more than earlier summaries."""
        return index > self.summaries and self.sums[self.summaries] - self.sums[index] >= least


def _boundaries(pieces: Sequence[Piece]) -> list[int]:
    """Return the indices, 0 first, before which nothing belongs to what follows."""
    boundaries: list[int] = []
    callers: dict[str, int] = {}
    behind_result = False
    for at, piece in enumerate(pieces):
        behind_result = piece.kind == "tool" or (behind_result and piece.kind == "other")
        if not behind_result:
            boundaries.append(at)
        callers.update(dict.fromkeys(piece.calls, at))
        caller = callers.get(piece.answers or "", at)
        while boundaries and boundaries[-1] > caller:
            boundaries.pop()
    return _before_unseen(pieces, boundaries)


def _before_unseen(pieces: Sequence[Piece], boundaries: list[int]) -> list[int]:
    """Leave out what lies behind calls whose results the model has not seen yet."""
    for at in range(len(pieces) - 1, -1, -1):
        if pieces[at].kind == "tool":
            answered = next((m for m in range(at, -1, -1) if pieces[m].kind == "model"), 0)
            return [each for each in boundaries if each <= answered]
        if pieces[at].kind == "model":
            break
    return boundaries


def _any_clause(trigger: Trigger, load: Load, threshold: Callable[[Size], int | None]) -> bool:
    def is_met(size: Size) -> bool:
        limit = threshold(size)
        return limit is not None and (load.messages if size.metric == "messages" else load.tokens) >= limit

    return any(all(map(is_met, clause)) for clause in trigger.clauses)


def _spaced(size: Size, window: int | None, since: Since | None) -> int | None:
    threshold = size.threshold(window)
    if threshold is None or since is None:
        return threshold
    if size.metric == "messages":
        return max(threshold, since.messages + max(2, math.ceil(threshold / 2)))
    apart = since.tokens + int(_SPACING * size.span(window))
    full = apart if window is None else int(FULL * window)
    return max(threshold, apart if since.tokens >= full else min(apart, full))
