"""Decide when to compact a context, and where to cut it: all numbers, and the forms callers give them in.

Numbers in, numbers out: nothing here knows of messages or models.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias, cast

from typing_extensions import TypedDict

from deepagents._values import valueclass
from deepagents.errors import ConfigError

Metric: TypeAlias = Literal["fraction", "tokens", "messages"]
ContextSize: TypeAlias = (
    tuple[Literal["fraction"], float] | tuple[Literal["tokens"], int] | tuple[Literal["messages"], int]
)

COMPACT_AT: Final[ContextSize] = ("fraction", 0.85)
KEEP: Final[ContextSize] = ("fraction", 0.1)
CLIP_AT: Final[ContextSize] = ("fraction", 0.5)

# For a model whose profile does not state its input window.
COMPACT_AT_TOKENS: Final[ContextSize] = ("tokens", 170_000)
KEEP_MESSAGES: Final[ContextSize] = ("messages", 6)
CLIP_AT_TOKENS: Final[ContextSize] = ("tokens", 100_000)
CLIP_KEEP_MESSAGES: Final[ContextSize] = ("messages", 20)

FULL_SHARE: Final = 0.97
"""The share of a window up to which a context may grow after a compaction that left much."""
SPACING: Final = 0.15
"""The share of a window that must be new text before the next compaction."""
LEAST_GAIN: Final = 0.05
"""The share of a window that a compaction must free to be worth a new summary and a new prompt prefix."""
AFTER_REFUSAL: Final = 0.5
"""The share of a refused request that the second try may have."""

DEFAULT_KEEP: Final[ContextSize] = ("messages", 20)
"""What `SummarizationMiddleware` keeps where a caller sets a trigger and no keep."""
_LEAST_SHARE: Final = 0.25
"""Of the messages to evict, the share below which the cut moves on to the next boundary and keeps fewer."""


class TriggerClause(TypedDict, total=False):
    """Sizes that must all be reached."""

    tokens: int
    messages: int
    fraction: float


TriggerLike: TypeAlias = ContextSize | TriggerClause | Sequence[ContextSize | TriggerClause]


class TruncateArgsSettings(TypedDict, total=False):
    """When to clip long arguments of old file writes, which messages are too new for it, and how far."""

    trigger: ContextSize | None
    keep: ContextSize
    max_length: int
    truncation_text: str


class SummarizationDefaults(TypedDict):
    """The settings that fit a model."""

    trigger: ContextSize
    keep: ContextSize
    truncate_args_settings: TruncateArgsSettings


def defaults_for(window: int | None) -> SummarizationDefaults:
    """Return the settings for a model with this input window: shares of it, or numbers if it is unknown."""
    if window is None:
        clip: TruncateArgsSettings = {"trigger": CLIP_AT_TOKENS, "keep": CLIP_KEEP_MESSAGES}
        return {"trigger": COMPACT_AT_TOKENS, "keep": KEEP_MESSAGES, "truncate_args_settings": clip}
    clip = {"trigger": CLIP_AT, "keep": KEEP}
    return {"trigger": COMPACT_AT, "keep": KEEP, "truncate_args_settings": clip}


@valueclass
class Size:
    """One validated size: what is counted, and how much of it."""

    metric: Metric
    amount: float

    def threshold(self, window: int | None) -> int | None:
        """Return the number of tokens or messages; `None` for a fraction of an unknown window."""
        if self.metric != "fraction":
            return int(self.amount)
        return None if window is None else max(1, int(window * self.amount))

    def span(self, window: int | None) -> float:
        """Return the window to take shares of: the model's, or a caller's smaller number of tokens."""
        if self.metric == "fraction":
            return window or 0
        return self.amount if window is None else min(self.amount, window)


Trigger: TypeAlias = tuple[tuple[Size, ...], ...]
"""When to act: any of the clauses suffices, each needs all of its sizes; without clauses never."""


def parse_trigger(given: TriggerLike | None) -> Trigger:
    """Validate and copy what a caller gave: a size, a clause, a list of both, or nothing.

    Raises:
        ConfigError: for an unknown metric, an empty clause or an impossible amount; also a ValueError.
        TypeError: for anything that has none of these forms.
    """
    match given:
        case None:
            return ()
        case list():
            return tuple(map(_parse_clause, cast("list[Any]", given)))
        case _:
            return (_parse_clause(given),)


def parse_size(given: object) -> Size:
    """Validate one size.

    Raises:
        ConfigError: for an unknown metric or an impossible amount; also a ValueError.
        TypeError: for anything but a pair.
    """
    if not isinstance(given, tuple):
        raise TypeError(
            f"{given!r} is not a size: give a pair such as ('fraction', 0.1) or ('messages', 20)."
        )
    pair = cast("tuple[Any, ...]", given)
    if len(pair) != 2 or pair[0] not in ("fraction", "tokens", "messages"):
        raise ConfigError(
            f"The size {pair!r} is unknown: give ('fraction', ...), ('tokens', ...) or ('messages', ...)."
        )
    metric, amount = pair
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if metric == "fraction" and not (is_number and 0 < amount <= 1):
        raise ConfigError(f"The fraction {amount!r} cannot be: give a number above 0 and up to 1.")
    if metric != "fraction" and not (is_number and isinstance(amount, int) and amount > 0):
        raise ConfigError(f"The number of {metric} {amount!r} cannot be: give a whole number above 0.")
    return Size(metric, amount)


def _parse_clause(given: object) -> tuple[Size, ...]:
    if isinstance(given, tuple):
        return (parse_size(cast("tuple[Any, ...]", given)),)
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{given!r} is not a trigger: give a pair such as ('fraction', 0.85), a dict such as "
            "{'tokens': 100000, 'messages': 50}, or a list of these."
        )
    clause = cast("Mapping[Any, Any]", given)
    if not clause:
        raise ConfigError(f"The trigger clause {given!r} is empty: name tokens, messages or fraction in it.")
    return tuple(map(parse_size, clause.items()))


PieceKind: TypeAlias = Literal["summary", "human", "model", "tool", "media"]


@valueclass
class Load:
    """How large a context is, in tokens and messages, and the window that it must fit, if known.

    What is old was there right after the last compaction; without one nothing is.
    """

    tokens: int
    messages: int
    window: int | None = None
    old_tokens: int = 0
    old_messages: int = 0


@valueclass
class Piece:
    """What cutting needs to know of a message: its kind, its tokens, the calls it makes, the call it answers.

    Kind `media` shows what the tool result before it returned, and belongs to that result.
    """

    kind: PieceKind
    tokens: int
    calls: tuple[str, ...] = ()
    answers: str | None = None


def is_due(trigger: Trigger, load: Load) -> bool:
    """Return whether to compact now.

    After a compaction the threshold is at least 15 % of the window above what was left, up to 97 % of the
    window unless more than that was left. Otherwise a large `keep` would bring a summary with every step.
    """
    return bool(_find_met(trigger, load))


def is_half_due(trigger: Trigger, load: Load) -> bool:
    """Return whether a compaction that the model asks for is worth it: from half of the trigger on."""
    return bool(_find_met(trigger, _double(load)))


def least_gain(trigger: Trigger, load: Load) -> int:
    """Return the tokens that a compaction must evict: 5 % of the window.

    It is 0 where a number of messages asks for the compaction: short messages may never hold 5 %.
    """
    clauses = _find_met(trigger, load) or _find_met(trigger, _double(load)) or trigger
    return min((_clause_gain(clause, load.window) for clause in clauses), default=0)


def cut(
    pieces: Sequence[Piece],
    keep: Size,
    *,
    window: int | None,
    fixed: int,
    least: int = 0,
    unseen_too: bool = False,
) -> int:
    """Return the index of the first piece to keep; 0 when nothing is worth evicting.

    Calls stay with their results, and results that the model has not seen stay unless `unseen_too`. What is
    kept leaves room to grow in addition to system prompt and tools, which have `fixed` tokens. Evicting fewer
    than `least` tokens is not worth it.
    """
    boundaries = _boundaries(pieces)
    if not unseen_too:
        boundaries = _before_unseen(pieces, boundaries)
    sums = [0, *accumulate(piece.tokens for piece in reversed(pieces))][::-1]
    first = next((at for at, piece in enumerate(pieces) if piece.kind != "summary"), len(pieces))
    context = _Cuts(boundaries, sums, first)
    room = None if window is None else int((FULL_SHARE - SPACING) * window) - fixed
    size = keep if keep.threshold(window) else parse_size(DEFAULT_KEEP)
    amount = size.threshold(window) or 0
    if size.metric == "messages":
        found = context.keeping_messages(amount, least)
        if room is not None and context.sums[found] > room:
            found = context.keeping_tokens(room)
    else:
        found = context.keeping_tokens(amount if room is None else min(amount, room))
    return found if context.gains(found, least) else 0


@valueclass
class _Cuts:
    """The indices at which a context can be cut, and for each index the tokens from there on.

    Before `first` stand summaries; evicting them alone gains nothing.
    """

    boundaries: Sequence[int]
    sums: Sequence[int]
    first: int

    def gains(self, index: int, least: int) -> bool:
        """Return whether cutting there evicts more than summaries, and so many tokens."""
        return index > self.first and self.sums[self.first] - self.sums[index] >= least

    def keeping_tokens(self, most: int) -> int:
        """Return the first boundary from which on there are no more tokens; the last one if there is none."""
        if self.sums[0] <= most or not self.boundaries:
            return 0
        # Negated, since the sums fall from left to right and bisection needs them to rise.
        at = bisect_left(self.boundaries, -most, key=lambda index: -self.sums[index])
        return self.boundaries[min(at, len(self.boundaries) - 1)]

    def keeping_messages(self, count: int, least: int) -> int:
        """Return the last boundary that keeps so many messages, or the next if that evicts too little."""
        wanted = len(self.sums) - 1 - count
        after = bisect_left(self.boundaries, wanted + 1)
        if wanted <= self.first or not after:
            return 0
        before = self.boundaries[after - 1]
        evicted = before - self.first
        if evicted >= _LEAST_SHARE * (wanted - self.first) and self.gains(before, least):
            return before
        return self.boundaries[after] if after < len(self.boundaries) else before


def _boundaries(pieces: Sequence[Piece]) -> list[int]:
    """Return the indices, 0 first, at which nothing before belongs to what follows."""
    boundaries: list[int] = []
    callers: dict[str, int] = {}
    caller: int | None = None
    for at, piece in enumerate(pieces):
        if piece.kind not in ("tool", "media") or not at:
            boundaries.append(at)
        callers.update(dict.fromkeys(piece.calls, at))
        if piece.kind == "tool":
            caller = callers.get(piece.answers or "", at)
        if piece.kind in ("tool", "media") and caller is not None:
            # A late result, or media behind a message of a person, binds all that stands in between.
            while boundaries and boundaries[-1] > caller:
                boundaries.pop()
    return boundaries


def _before_unseen(pieces: Sequence[Piece], boundaries: list[int]) -> list[int]:
    """Leave out the boundaries behind calls whose results the model has not seen yet."""
    for at in range(len(pieces) - 1, -1, -1):
        if pieces[at].kind == "tool":
            answered = next((m for m in range(at, -1, -1) if pieces[m].kind == "model"), 0)
            return [each for each in boundaries if each <= answered]
        if pieces[at].kind == "model":
            break
    return boundaries


def _find_met(trigger: Trigger, load: Load) -> Trigger:
    return tuple(clause for clause in trigger if all(_is_reached(size, load) for size in clause))


def _double(load: Load) -> Load:
    return Load(2 * load.tokens + 1, 2 * load.messages + 1, load.window)


def _clause_gain(clause: Sequence[Size], window: int | None) -> int:
    if any(size.metric == "messages" for size in clause):
        return 0
    return min(int(LEAST_GAIN * size.span(window)) for size in clause)


def _is_reached(size: Size, load: Load) -> bool:
    least = size.threshold(load.window)
    if least is None:
        return False
    if size.metric == "messages":
        raised = load.old_messages + max(2, math.ceil(least / 2))
        return load.messages >= (max(least, raised) if load.old_messages else least)
    apart = load.old_tokens + int(SPACING * size.span(load.window))
    full = apart if load.window is None else int(FULL_SHARE * load.window)
    raised = apart if load.old_tokens >= full else min(apart, full)
    return load.tokens >= (max(least, raised) if load.old_messages else least)
