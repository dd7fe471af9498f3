"""An account: what one agent or one call, and all that works for it, has spent, and what it may spend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any, Final, Literal, TypeAlias

from deepagents.limits import COUNTED, Kind, Limits, Price, price_in

Spent: TypeAlias = Mapping[str, Any]
Call: TypeAlias = Literal["model_calls", "tool_calls"]

SECONDS: Final = "seconds"
TOLD: Final = "told"
REFUSED: Final = "refused"
_ADDED: Final = tuple(kind for kind in COUNTED if kind != SECONDS)
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
        paid: what the accounts above hold already of a call that is made again.
    """

    def __init__(
        self,
        above: Account | None = None,
        limits: Limits | None = None,
        prices: Mapping[str, Price] | None = None,
        paid: Spent | None = None,
    ) -> None:
        self.above = above
        self.limits = limits
        self.prices = {**(prices or {}), **(limits.prices if limits else {})}
        self.lock: Any = above.lock if above else Lock()
        self.counts = counts_in(paid or {})
        self.refused = False
        self.is_whole = False
        self._again: dict[str, Spent] = {}
        self.paid = dict(self.counts)
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

    def begin(self, past: Spent) -> None:
        """Start with what was spent before this run, which counts for none above."""
        with self.lock:
            self.is_whole = True
            self.counts, self.refused = counts_in(past), bool(past.get(REFUSED))
            self._began = monotonic() - past.get(SECONDS, 0.0)

    def take_up(self, saved: Spent, past: Spent, failed: Spent, again: Mapping[str, Spent]) -> None:
        """Go on with a run: once only, whoever asks.

        Args:
            saved: what is saved with the agent, its past before this run included.
            past: the part of it that counts for none above.
            failed: what calls of this step spent that failed.
            again: what calls of this step spent that are made again, by the task.
        """
        with self.lock:
            if self.is_whole:
                return
            self.is_whole, self._again = True, dict(again)
            parts = (saved, failed, *again.values())
            self._began = min(self._began, monotonic() - max(each.get(SECONDS, 0.0) for each in parts))
            self.refused = any(each.get(REFUSED) for each in parts)
            self._unsaved = counts_in(failed)
            for kind in _ADDED:
                if amount := sum(each.get(kind, 0) for each in parts):
                    self._restore(kind, amount, past.get(kind, 0))

    def call(self, task: str | None = None) -> Account:
        """Return the account of a call that this agent makes, or makes again in this task."""
        with self.lock:
            return Account(self, paid=self._again.pop(task, None) if task else None)

    def stopping(self, call: Call) -> Reached | None:
        """Return the limit for which no such call may be made any more."""
        with self.lock:
            return next((reached for _, reached in self._stopping(call)), None)

    def reserve(self, call: Call, *, own: bool = False) -> Reached | None:
        """Count a call that is about to be made; where it may not be made any more, say why.

        The call that this account is for, its `own`, is not counted again when it is made again.
        """
        with self.lock:
            again = own and self.paid.get(call, 0) > 0
            stops = (each for each in self._stopping(call) if not again or each[1].kind != call)
            account, reached = next(stops, (self, None))
            if reached is None:
                self._prepaid.append(call)
                if again:
                    self.paid[call] -= 1
                else:
                    self._add(call, 1)
            elif reached.kind == call == "tool_calls":
                account.refused = True
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
        return {**found, **self._marks(seconds), **({TOLD: told} if told else {})}

    def under_way(self, call: Account) -> Spent:
        """Return what a call has spent that is not over."""
        with self.lock:
            return {**call.counts, **self._marks(monotonic() - self._began)}

    def _marks(self, seconds: float) -> dict[str, Any]:
        return {SECONDS: seconds, **({REFUSED: True} if self.refused else {})}

    def _add(self, kind: str, amount: float) -> None:
        for each in self.line():
            each.counts[kind] = each.counts.get(kind, 0) + amount

    def _restore(self, kind: str, amount: float, past: float) -> None:
        """Count what was spent before, here and above, but for what is known there."""
        self.counts[kind] = self.counts.get(kind, 0) + amount
        amount = max(amount - past, 0)
        for each in self.above.line() if self.above else ():
            if known := min(each.paid.get(kind, 0), amount):
                each.paid[kind] -= known
                amount -= known
            each.counts[kind] = each.counts.get(kind, 0) + amount

    def _stopping(self, call: Call) -> Iterator[tuple[Account, Reached]]:
        return ((each, reached) for each in self.line() for reached in each.stops(call))

    def stops(self, call: Call) -> Iterator[Reached]:
        """Name the limits of this account alone that forbid such a call; for whoever holds the lock."""
        spent = {**self.counts, SECONDS: monotonic() - self._began}
        for kind in _STOPS[call]:
            most, so_far = self.limits.most(kind) if self.limits else None, spent.get(kind, 0)
            if most and so_far >= most:
                yield Reached(kind, most, so_far)
        if self.limits and self.limits.tool_calls and self.refused:
            yield Reached("tool_calls", self.limits.tool_calls, spent.get("tool_calls", 0))


def counts_in(spent: Spent) -> dict[str, float]:
    """Return what can be added up of what was spent."""
    return {kind: spent[kind] for kind in _ADDED if spent.get(kind)}
