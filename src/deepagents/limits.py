"""Define how much a run may spend, over an agent and all that work for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import astuple
from operator import add
from typing import Any, Final, Literal, TypeAlias, TypeGuard, cast

from deepagents._values import field, frozenclass
from deepagents.errors import ConfigError

__all__ = ["Limits", "Price"]

Kind: TypeAlias = Literal["tokens", "money", "seconds", "model_calls", "tool_calls", "repeats"]

LEAST_ANSWER: Final = 1_024
"""The tokens of the shortest answer that is worth a request to a model."""
COUNTED: Final[tuple[Kind, ...]] = ("tokens", "money", "seconds", "model_calls", "tool_calls")
"""The kinds that are added up over the whole tree; `repeats` is looked at within each agent."""
_WHOLE: Final[tuple[Kind, ...]] = ("tokens", "model_calls", "tool_calls", "repeats")
_MOST: Final = sys.float_info.max
_PER: Final = 1_000_000
_PARTS: Final = {"cached_input": "cache_read", "cache_write": "cache_write"}


@frozenclass
class Tokens:
    """The tokens of one or more calls of a model; the input holds those read from and written to a cache."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0

    @classmethod
    def of(cls, usage: Mapping[str, Any]) -> Tokens:
        """Read the `usage_metadata` of a message."""
        details: Mapping[str, int | None] = usage.get("input_token_details") or {}
        # Anthropic's package tells no sum where it tells how long what was written is kept.
        lasting = (details.get(f"ephemeral_{time}_input_tokens") or 0 for time in ("5m", "1h"))
        written = details.get("cache_creation") or sum(lasting)
        counts = (usage["input_tokens"], usage["output_tokens"], details.get("cache_read") or 0, written)
        return cls(*(max(each, 0) for each in counts))

    def __add__(self, more: Tokens) -> Tokens:
        """Add up two counts."""
        return Tokens(*map(add, astuple(self), astuple(more)))

    def cost(self, price: Price) -> float:
        """Return what they cost."""
        return price.of(self.input, self.output, self.cached, self.cache_written)


@frozenclass
class Price:
    """The price of a million tokens of a model; without prices of its own a cache costs as other input.

    Raises:
        ConfigError: for a number that is not a price.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached_input", "cache_write"):
            given: object = getattr(self, name)
            optional = given is None and name in _PARTS
            if not optional and not _is_amount(given):
                raise ConfigError(f"Price({name}={given!r}) must be a number that is 0 or more")

    def of(self, read: int, written: int, cached: int = 0, cache_written: int = 0) -> float:
        """Return what a call costs; the input tokens hold those read from and written to a cache."""
        fresh = max(read - cached - cache_written, 0)
        kept = self.input if self.cached_input is None else self.cached_input
        stored = self.input if self.cache_write is None else self.cache_write
        return (fresh * self.input + cached * kept + cache_written * stored + written * self.output) / _PER

    def most_for(self, read: int) -> float:
        """Return what so many input tokens cost at most, whatever a cache does with them."""
        return max(self.of(read, 0), self.of(read, 0, cached=read), self.of(read, 0, cache_written=read))

    def of_answer(self, read: int) -> float:
        """Return what a token of the answer costs, which in some price lists depends on the input."""
        return (self.of(read, _PER) - self.of(read, 0)) / _PER


@frozenclass
class Limits:
    """What an agent and all its descendants may use together, for each message of the user.

    Args:
        tokens: input and output tokens of all model calls.
        money: what they cost, by `prices` or by `cost` in the profile of a model.
        seconds: wall time; the time in which a person is waited for does not count.
        model_calls: requests to models, further attempts included.
        tool_calls: tool calls.
        repeats: how often in a row one agent may call the same tool with the same arguments.
        prices: by `"provider:name"`, by name, or `"*"` for every other model.
        warn_at: the share of a limit from which on the model is warned, once for each agent and kind.
        per: `"message"` starts anew with each message of the user, `"thread"` never does.

    Raises:
        ConfigError: for a value that is not a limit, and without any limit.
    """

    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    repeats: int | None = None
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    warn_at: float = 0.8
    per: Literal["message", "thread"] = "message"

    def __post_init__(self) -> None:
        given = {kind: getattr(self, kind) for kind in (*COUNTED, "repeats")}
        for kind, value in given.items():
            if value is not None and not _is_limit(value, whole=kind in _WHOLE):
                what = "a whole number" if kind in _WHOLE else "a number"
                raise ConfigError(f"Limits({kind}={value!r}) must be {what} greater than 0, or None")
        if all(value is None for value in given.values()):
            raise ConfigError(f"Limits() limits nothing; give at least one of {', '.join(given)}")
        if not _is_amount(self.warn_at) or self.warn_at > 1:
            raise ConfigError(f"Limits(warn_at={self.warn_at!r}) must be a share from 0 to 1")
        if self.per not in ("message", "thread"):
            raise ConfigError(f"Limits(per={self.per!r}) must be 'message' or 'thread'")
        for name, price in cast("Mapping[str, object]", self.prices).items():
            if not isinstance(price, Price):
                raise ConfigError(f"prices of Limits must be Price(input, output); {name!r} is {price!r}")

    def most(self, kind: Kind) -> float | None:
        """Return the limit of a kind."""
        limit: float | None = getattr(self, kind)
        return limit


def price_in(prices: Mapping[str, Price], provider: str | None, name: str | None) -> Price | None:
    """Find the price of a model: by provider and name, by its name, or by the one for every model."""
    keys = (f"{provider}:{name}", name or "", "*")
    return next((prices[key] for key in keys if key in prices), None)


def price_of_profile(profile: object) -> Price | None:
    """Return the price of a million tokens in the `cost` of a model's profile; `None` without one."""
    costs = _mapping(_mapping(profile).get("cost"))
    names = {"input": "input", "output": "output", **_PARTS}
    known = {name: each for name, source in names.items() if _is_amount(each := costs.get(source))}
    return Price(**known) if known.keys() >= {"input", "output"} else None


def _mapping(given: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {}


def _is_limit(value: object, *, whole: bool) -> bool:
    return _is_amount(value) and value != 0 and (not whole or isinstance(value, int))


def _is_amount(value: object) -> TypeGuard[float]:
    # `True` is an `int`. No comparison holds for nan, and infinity is above the largest float.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST
