"""An account: what one agent or one call, and all that works for it, has spent, and what it may spend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any, Final, Literal, TypeAlias, cast

from deepagents.limits import COUNTED, Kind, Limits, Price, price_in

Spent: TypeAlias = Mapping[str, Any]
Call: TypeAlias = Literal["model_calls", "tool_calls"]

SECONDS: Final = "seconds"
TOLD: Final = "told"
_STOPS: Final[Mapping[Call, tuple[Kind, ...]]] = {
    "model_calls": ("tokens", "money", "seconds", "model_calls"),
    "tool_calls": ("seconds", "tool_calls"),
}


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that is used up, or nearly."""

    kind: Kind
    limit: float
    spent: float


class Account:
    """What one agent or one call, and all that works for it, has spent so far.

    Args:
        above: the account that all of this counts for as well.
        limits: what binds this one.
        prices: of models, beside those that the limits name.
    """

    def __init__(
        self,
        above: Account | None = None,
        limits: Limits | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self.above = above
        self.limits = limits
        self.prices = {**(prices or {}), **(limits.prices if limits else {})}
        self.lock: Any = above.lock if above else Lock()
        self.counts: dict[str, float] = {}
        self._unsaved: dict[str, float] = {}
        self._prepaid: list[Call] = []
        self._began = monotonic()

    def line(self) -> Iterator[Account]:
        """Return this account and those above it."""
        account: Account | None = self
        while account is not None:
            yield account
            account = account.above

    def spent(self) -> dict[str, float]:
        """Return what was spent, by kind."""
        with self.lock:
            return {**self.counts, SECONDS: monotonic() - self._began}

    def price(self, provider: str | None, name: str | None) -> Price | None:
        """Return the price of a model, as the nearest account knows it."""
        found = (price_in(each.prices, provider, name) for each in self.line())
        return next((price for price in found if price), None)

    def learn(self, name: str, price: Price) -> None:
        """Note the price of a model by its name."""
        self.prices = {**self.prices, name: price}

    def limited(self, *kinds: Kind) -> bool:
        """Tell whether one of these kinds is limited here or above."""
        return any(each.limits and each.limits.most(kind) for each in self.line() for kind in kinds)

    def at_least(self, saved: Spent) -> None:
        """Take over what was saved, where that is more than what is known here."""
        with self.lock:
            self._began = min(self._began, monotonic() - saved.get(SECONDS, 0.0))
            for kind in COUNTED:
                missing = saved.get(kind, 0) - self.counts.get(kind, 0)
                if kind != SECONDS and missing > 0:
                    self._add(kind, missing)

    def void(self) -> None:
        """Take back what this counted for the accounts above."""
        with self.lock:
            for kind, amount in tuple(self.counts.items()):
                self._add(cast(Kind, kind), -amount)

    def reserve(self, call: Call) -> Reached | None:
        """Count a call that is about to be made; where it may not be made any more, say why.

        A tool call that is refused counts as well: one more than there may be ends the run.
        """
        with self.lock:
            reached = next(self._stopping(call), None)
            if reached is None or reached.kind == call == "tool_calls":
                self._add(call, 1)
            if reached is None:
                self._prepaid.append(call)
            return reached

    def redeem(self, call: Call) -> bool:
        """Use a call that was counted before it was made; `False` when none is left."""
        with self.lock:
            if call not in self._prepaid:
                return False
            self._prepaid.remove(call)
            return True

    def take_back(self, call: Call) -> None:
        """Count a call no longer that was not made after all."""
        if self.redeem(call):
            self.add(call, -1)

    def add(self, kind: Kind, amount: float) -> None:
        """Count what was spent."""
        with self.lock:
            self._add(kind, amount)

    def near(self) -> Iterator[Reached]:
        """Name the limits of which the next request to a model would leave little, the nearest first."""
        for account in self.line():
            if account.limits is None:
                continue
            spent = account.spent()
            for kind in COUNTED:
                most = account.limits.most(kind)
                so_far = spent.get(kind, 0)
                after = so_far + (kind == "model_calls")
                edge = (most or 0) * account.limits.warn_at
                if most and (after > edge if kind == "model_calls" else so_far >= edge):
                    yield Reached(kind, most, so_far)

    def seconds_left(self) -> float | None:
        """Return how long work may still take, `None` without a limit."""
        left = [
            each.limits.seconds - each.spent()[SECONDS]
            for each in self.line()
            if each.limits and each.limits.seconds
        ]
        return max(min(left), 0.0) if left else None

    def keep(self, call: Account) -> None:
        """Remember what a call spent that failed, until the next write."""
        with self.lock:
            for kind, amount in call.counts.items():
                self._unsaved[kind] = self._unsaved.get(kind, 0) + amount

    def due(self, call: Account | None, told: list[Kind]) -> dict[str, Any]:
        """Return the write that saves what a call spent, and what failed before it."""
        with self.lock:
            found, self._unsaved = self._unsaved, {}
            for kind, amount in (call.counts if call else {}).items():
                found[kind] = found.get(kind, 0) + amount
            seconds = monotonic() - self._began
        return {**found, SECONDS: seconds, **({TOLD: told} if told else {})}

    def _add(self, kind: Kind, amount: float) -> None:
        for each in self.line():
            each.counts[kind] = each.counts.get(kind, 0) + amount

    def _stopping(self, call: Call) -> Iterator[Reached]:
        for account in self.line():
            limits = account.limits
            for kind in _STOPS[call] if limits else ():
                most = limits.most(kind) if limits else None
                spent = account.count_of(kind)
                if most and spent >= most:
                    yield Reached(kind, most, spent)
            if limits and limits.tool_calls and call == "model_calls":
                asked = account.count_of("tool_calls")
                if asked > limits.tool_calls:
                    yield Reached("tool_calls", limits.tool_calls, asked)

    def count_of(self, kind: Kind) -> float:
        """Return what was spent of a kind; for whoever holds the lock."""
        return monotonic() - self._began if kind == SECONDS else self.counts.get(kind, 0)
