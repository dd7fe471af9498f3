"""The sizes a caller may give, for when to compact and how much to keep: their forms, checked and copied."""

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

_METRICS: Final[tuple[Metric, ...]] = ("fraction", "tokens", "messages")
_USUAL_TRIGGER: Final = 0.85


class TriggerClause(TypedDict, total=False):
    """Sizes that must all be reached."""

    tokens: int
    messages: int
    fraction: float


TriggerLike: TypeAlias = ContextSize | TriggerClause | Sequence[ContextSize | TriggerClause]


class TruncateArgsSettings(TypedDict, total=False):
    """When long arguments of old file writes are clipped, which are not yet old, and to what."""

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
    """Return the settings for a model whose input window has this size, `None` where that is unknown."""
    if window is None:
        return {
            "trigger": ("tokens", 170_000),
            "keep": ("messages", 6),
            "truncate_args_settings": {"trigger": ("tokens", 100_000), "keep": ("messages", 20)},
        }
    return {
        "trigger": ("fraction", 0.85),
        "keep": ("fraction", 0.1),
        "truncate_args_settings": {"trigger": ("fraction", 0.5), "keep": ("fraction", 0.1)},
    }


@dataclass(frozen=True, slots=True)
class Size:
    """One checked size: what is counted, and how much of it."""

    metric: Metric
    amount: float

    @classmethod
    def of(cls, given: object) -> Size:
        """Check what a caller gave.

        Raises:
            ConfigError: for an unknown metric, or an amount that cannot be; also a ValueError.
            TypeError: for something that is no pair.
        """
        if not isinstance(given, tuple):
            raise TypeError(
                f"{given!r} is no size: give a pair such as ('fraction', 0.1) or ('messages', 20)."
            )
        return _checked(cast("tuple[Any, ...]", given))

    def threshold(self, window: int | None) -> int | None:
        """Return the number of tokens or messages that is meant; `None` where that takes a window."""
        if self.metric != "fraction":
            return int(self.amount)
        return None if window is None else max(1, int(window * self.amount))

    def span(self, window: int | None) -> float:
        """Return the window this speaks of: the model's, or a smaller one that its tokens would fill."""
        if self.metric == "fraction":
            return window or 0
        meant = self.amount / _USUAL_TRIGGER
        return meant if window is None else min(meant, window)


@dataclass(frozen=True, slots=True)
class Trigger:
    """When to compact: any of the clauses, each with all of its sizes; without clauses never."""

    clauses: tuple[tuple[Size, ...], ...] = ()

    @classmethod
    def of(cls, given: TriggerLike | None) -> Trigger:
        """Check and copy what a caller gave: a size, a clause, a list of both, or nothing.

        Raises:
            ConfigError: for an unknown metric, an empty clause, an amount that cannot be; also a ValueError.
            TypeError: for something that is none of these forms.
        """
        match given:
            case None:
                return cls()
            case list():
                return cls(tuple(map(_clause, cast("list[Any]", given))))
            case _:
                return cls((_clause(given),))

    @property
    def uses_fraction(self) -> bool:
        """Tell whether a window must be known to tell when."""
        return any(size.metric == "fraction" for clause in self.clauses for size in clause)


@dataclass(frozen=True, slots=True)
class Keep:
    """How much of the newest part of a context stays as it is."""

    size: Size

    @classmethod
    def of(cls, given: ContextSize) -> Keep:
        """Check what a caller gave.

        Raises:
            ConfigError: for an unknown metric, or an amount that cannot be; also a ValueError.
            TypeError: for something that is no pair.
        """
        return cls(Size.of(given))

    @property
    def uses_fraction(self) -> bool:
        """Tell whether a window must be known to tell how much."""
        return self.size.metric == "fraction"


def _clause(given: object) -> tuple[Size, ...]:
    if isinstance(given, tuple):
        return (Size.of(cast("tuple[Any, ...]", given)),)
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{given!r} is no trigger: give a pair such as ('fraction', 0.85), a dict such as "
            "{'tokens': 100000, 'messages': 50}, or a list of these."
        )
    clause = cast("Mapping[Any, Any]", given)
    if not clause:
        raise ConfigError(f"The trigger clause {given!r} is empty: name tokens, messages or fraction in it.")
    return tuple(_checked(item) for item in clause.items())


def _checked(given: tuple[Any, ...]) -> Size:
    if len(given) != 2 or given[0] not in _METRICS:
        raise ConfigError(
            f"The size {given!r} is unknown: give ('fraction', ...), ('tokens', ...) or ('messages', ...)."
        )
    metric, amount = given
    if metric == "fraction" and not (_is_number(amount) and 0 < amount <= 1):
        raise ConfigError(f"The fraction {amount!r} cannot be: give a number above 0 and up to 1.")
    if metric != "fraction" and not (_is_number(amount) and isinstance(amount, int) and amount > 0):
        raise ConfigError(f"The number of {metric} {amount!r} cannot be: give a whole number above 0.")
    return Size(metric, amount)


def _is_number(amount: object) -> bool:
    return isinstance(amount, int | float) and not isinstance(amount, bool)
