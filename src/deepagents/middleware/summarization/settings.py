"""When a context is compacted and how much of it stays: every number, and the forms callers give them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from typing_extensions import TypedDict

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
_FILLED_BY_TOKENS: Final = 0.85
"""The share of a window that a caller's number of tokens is taken for, where a span needs a whole window."""
AFTER_REFUSAL: Final = 0.5
"""The share of the refused request that is sent in the second try."""

DEFAULT_KEEP: Final[ContextSize] = ("messages", 20)
"""What `SummarizationMiddleware` keeps where a caller sets a trigger and no keep."""


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


@dataclass(frozen=True, slots=True)
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
        """Return the window to take shares of: the model's, or a smaller one that these tokens fill."""
        if self.metric == "fraction":
            return window or 0
        filled = self.amount / _FILLED_BY_TOKENS
        return filled if window is None else min(filled, window)


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
        raise TypeError(f"{given!r} is no size: give a pair such as ('fraction', 0.1) or ('messages', 20).")
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
            f"{given!r} is no trigger: give a pair such as ('fraction', 0.85), a dict such as "
            "{'tokens': 100000, 'messages': 50}, or a list of these."
        )
    clause = cast("Mapping[Any, Any]", given)
    if not clause:
        raise ConfigError(f"The trigger clause {given!r} is empty: name tokens, messages or fraction in it.")
    return tuple(map(parse_size, clause.items()))
