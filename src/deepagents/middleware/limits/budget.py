"""Count what one agent or one call, and all that works for it, has spent, and what it may still spend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from math import inf
from threading import RLock
from time import monotonic
from typing import Any, Final, Literal, TypeAlias

from deepagents._values import valueclass
from deepagents.errors import LimitExceeded
from deepagents.limits import COUNTED, Kind, Limits, Price, price_in
from deepagents.middleware.limits.need import HELD, Hold, Need

Spent: TypeAlias = Mapping[str, Any]
CallKind: TypeAlias = Literal["model_calls", "tool_calls"]

SECONDS: Final = "seconds"
REFUSED: Final = "refused"
_ADDED: Final = tuple(kind for kind in COUNTED if kind != SECONDS)
_STOPS: Final[Mapping[CallKind, tuple[Kind, ...]]] = {
    "model_calls": ("tokens", "money", "seconds", "model_calls"),
    "tool_calls": ("seconds", "tool_calls"),
}

_DENSEST: Final = 4.0
"""Tokens of a provider for each one that is estimated, at most, of text that no request has had yet."""
_UNITS: Final[Mapping[Kind, str]] = {
    "tokens": "tokens",
    "money": "in cost",
    "seconds": "seconds",
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "repeats": "identical calls in a row",
}


@valueclass
class Reached:
    """A limit that is used up, or nearly."""

    kind: Kind
    limit: float
    spent: float


class Budget:
    """What one agent or one call, and all that works for it, has spent so far.

    Args:
        above: the budget that all of this counts for as well.
        limits: what binds this one.
        prices: of models, in addition to those that the limits name.
        paid: what the budgets above hold already of a call that is made again.
    """

    def __init__(
        self,
        above: Budget | None = None,
        limits: Limits | None = None,
        prices: Mapping[str, Price] | None = None,
        paid: Spent | None = None,
    ) -> None:
        self.above = above
        self.limits = limits
        self.prices = {**(prices or {}), **(limits.prices if limits else {})}
        self.own_lock: Any = RLock()
        self.counts = counts_in(paid or {})
        self.paid = dict(self.counts)
        self._settled: dict[str, float] = {}
        self.refused = False
        self.is_restored = False
        self._again: dict[str, Spent] = {}
        self._unsaved: dict[str, float] = {}
        self._reserved = 0
        self.holds: set[Hold] = set()
        self.waiting: list[Future[None]] = []
        self.reports: dict[str, tuple[int, int]] = {}
        self._began = monotonic()

    @property
    def root(self) -> Budget:
        """The budget of the whole tree."""
        return self.above.root if self.above else self

    @property
    def lock(self) -> Any:
        """One lock for the whole tree: a count is added to every budget up to the root at once."""
        return self.root.own_lock

    def chain(self) -> Iterator[Budget]:
        """Return this budget and those above it."""
        budget: Budget | None = self
        while budget is not None:
            yield budget
            budget = budget.above

    def sum_spent(self) -> dict[str, float]:
        """Return what was spent, by kind."""
        with self.lock:
            return {**self.counts, SECONDS: monotonic() - self._began}

    def price(self, provider: str | None, name: str | None) -> Price | None:
        """Return the price of a model, as the nearest budget knows it."""
        found = (price_in(each.prices, provider, name) for each in self.chain())
        return next((price for price in found if price), None)

    def learn(self, name: str, price: Price) -> None:
        """Note the price of a model by its name."""
        # A new dict: another thread may be looking up a price in the old one.
        self.prices = {**self.prices, name: price}

    def is_limited(self, *kinds: Kind) -> bool:
        """Return whether one of these kinds is limited here or above."""
        return any(each.limits and each.limits.most(kind) for each in self.chain() for kind in kinds)

    def begin(self, past: Spent) -> None:
        """Start with what was spent before this run, which counts for none above."""
        with self.lock:
            self.is_restored = True
            self.counts, self.refused = counts_in(past), bool(past.get(REFUSED))
            self._began = monotonic() - past.get(SECONDS, 0.0)

    def resume(self, saved: Spent, past: Spent, failed: Spent, again: Mapping[str, Spent]) -> None:
        """Go on with a run; only the first of parallel tasks that ask for it does.

        Args:
            saved: what is saved with the agent, its past before this run included.
            past: the part of it that counts for none above.
            failed: what calls of this step spent that failed.
            again: what calls of this step spent that are made again, by the task.
        """
        with self.lock:
            if self.is_restored:
                return
            self.is_restored, self._again = True, dict(again)
            parts = (saved, failed, *again.values())
            # Parts of a run share one stretch of time, so the longest counts and not the sum.
            self._began = min(self._began, monotonic() - max(each.get(SECONDS, 0.0) for each in parts))
            self.refused = any(each.get(REFUSED) for each in parts)
            self._unsaved = counts_in(failed)
            for kind in _ADDED:
                if amount := sum(each.get(kind, 0) for each in parts):
                    self._restore(kind, amount, past.get(kind, 0))

    def for_call(self, task: str | None = None) -> Budget:
        """Return the budget of a call that this agent makes, or makes again in this task."""
        with self.lock:
            return Budget(self, paid=self._again.pop(task, None) if task else None)

    def for_background(self) -> Budget:
        """Return the budget of work that outlasts the call which starts it."""
        work = Budget(self)
        # What the work restores when it goes on was counted here while it was done.
        work.paid = dict.fromkeys(_ADDED, inf)
        return work

    def find_reached(self, call: CallKind) -> Reached | None:
        """Return the limit for which no such call may be made any more."""
        with self.lock:
            return next((reached for _, reached in self._find_reached(call)), None)

    def reserve(self) -> Reached | None:
        """Count the tool call that this budget is for, or return the limit that forbids it.

        Where the call is made again after an interrupt, it was counted the first time.
        """
        with self.lock:
            if self.paid.get("tool_calls", 0) > 0:
                self.paid["tool_calls"] -= 1
                stops = (reached for _, reached in self._find_reached("tool_calls"))
                found = next((reached for reached in stops if reached.kind != "tool_calls"), None)
            else:
                error = self.start("tool_calls")
                found = error.reached if error else None
            self._reserved += found is None
            return found

    def start(self, call: CallKind) -> LimitExceeded | None:
        """Count a call that begins, unless it was reserved, or return the error that forbids it."""
        with self.lock:
            # The callback reports the very call that `reserve` has counted.
            if call == "tool_calls" and self._reserved:
                self._reserved -= 1
                return None
            budget, reached = next(self._find_reached(call), (self, None))
            if reached is None:
                self.add(call, 1)
                return None
            if reached.kind == call == "tool_calls":
                budget.refused = True
            return _exceeding(budget, reached)

    def hold(self, need: Need, *, waits: bool = True) -> Hold | Future[None]:
        """Keep from others what a call of a model may take, until `release`.

        Where too little is left now and others hold more, return what to wait for, if the caller `waits`. A
        long answer gets no more than half of what is left, so that others can work meanwhile.

        Raises:
            LimitExceeded: when no answer of any use would fit.
        """
        with self.lock:
            free = room = inf
            for each, kind, most in self._bounds():
                spent = each.counts.get(kind, 0)
                fits = need.fitting(kind, most - spent)
                fits_now = need.fitting(kind, most - spent - sum(hold.taken[kind] for hold in each.holds))
                if (fits if waits else fits_now) < need.least:
                    raise _exceeding(each, Reached(kind, most, spent))
                free, room = min(free, fits), min(room, fits_now)
            if waits and room < min(need.ample, free):
                waiting = Future[None]()
                self.root.waiting.append(waiting)
                return waiting
            hold = Hold(need, int(min(need.answer, room, max(need.ample, room / 2))))
            for each in self.chain():
                each.holds.add(hold)
            return hold

    def release(self, hold: Hold) -> None:
        """Give back what was held; a second time it changes nothing."""
        with self.lock:
            hold.is_open = False
            for each in self.chain():
                each.holds.discard(hold)
            self.root.wake()

    def correct(self, model: str, estimate: int) -> int:
        """Return an estimate of tokens as the model's provider would count, by its last report known here."""
        known = next((each.reports[model] for each in self.chain() if model in each.reports), (1, 1))
        before, reported = known
        factor = max(reported / before, 1.0)
        if estimate <= before:
            return int(estimate * factor)
        # What comes next is text: a file that was dense to the provider is there once.
        return max(before, reported) + int((estimate - before) * min(factor, _DENSEST))

    def learn_report(self, model: str, estimate: int, reported: int) -> None:
        """Note how many tokens the provider of a model counted for those that were estimated."""
        # Kept with the agent, whose next request resembles this one; those below begin with it.
        (self.above or self).reports[model] = (max(estimate, 1), reported)

    def _bounds(self) -> Iterator[tuple[Budget, Kind, float]]:
        for each in self.chain():
            for kind in HELD:
                if each.limits and (most := each.limits.most(kind)):
                    yield each, kind, most

    def wake(self) -> None:
        """Let those look again who wait for room."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            if each.set_running_or_notify_cancel():
                each.set_result(None)

    def add(self, kind: Kind, amount: float) -> None:
        """Count what was spent."""
        with self.lock:
            for each in self.chain():
                each.counts[kind] = each.counts.get(kind, 0) + amount

    def near(self) -> Iterator[Reached]:
        """Return the limits of which the next request to a model would leave little, the nearest first."""
        for budget in self.chain():
            if budget.limits is None:
                continue
            spent = budget.sum_spent()
            for kind in COUNTED:
                most = budget.limits.most(kind)
                so_far = spent.get(kind, 0)
                after = so_far + (kind == "model_calls")
                edge = (most or 0) * budget.limits.warn_at
                if most and (after > edge if kind == "model_calls" else so_far >= edge):
                    yield Reached(kind, most, so_far)

    def seconds_left(self) -> float | None:
        """Return how long work may still take, `None` without a limit."""
        left = [
            each.limits.seconds - each.sum_spent()[SECONDS]
            for each in self.chain()
            if each.limits and each.limits.seconds
        ]
        return max(min(left), 0.0) if left else None

    def keep(self, call: Budget) -> None:
        """Remember what a call spent that failed, until the next write."""
        with self.lock:
            for kind, amount in call.counts.items():
                self._unsaved[kind] = self._unsaved.get(kind, 0) + amount

    def to_save(self, call: Budget | None) -> dict[str, Any]:
        """Return the write that saves what a call spent, and what failed before it."""
        with self.lock:
            if call:
                self.keep(call)
            found, self._unsaved = self._unsaved, {}
            return {**found, **self._marks()}

    def adopt(self, work: Budget) -> dict[str, Any]:
        """Return the write that saves what work in the background spent since the last time.

        What a former run of this agent began counts for this run from now on.
        """
        with self.lock:
            held = dict(work.counts)
            new = {kind: amount - work._settled.get(kind, 0) for kind, amount in held.items()}
            if work.above is not self:
                for each in work.above.chain() if work.above else ():
                    each.holds -= work.holds
                work.root.wake()
                work.above = self
                for each in self.chain():
                    each.holds |= work.holds
                    each.counts = {**each.counts, **{k: each.counts.get(k, 0) + new[k] for k in new}}
            work._settled = held
            return {**new, **self._marks()} if any(new.values()) else {}

    def sum_unfinished(self, call: Budget) -> Spent:
        """Return what a call has spent that is not over."""
        with self.lock:
            return {**call.counts, **self._marks()}

    def _marks(self) -> dict[str, Any]:
        return {SECONDS: monotonic() - self._began, **({REFUSED: True} if self.refused else {})}

    def _restore(self, kind: str, amount: float, past: float) -> None:
        """Count what was spent before, here and above, but for what is known there."""
        self.counts[kind] = self.counts.get(kind, 0) + amount
        amount = max(amount - past, 0)
        for each in self.above.chain() if self.above else ():
            if known := min(each.paid.get(kind, 0), amount):
                each.paid[kind] -= known
                amount -= known
            each.counts[kind] = each.counts.get(kind, 0) + amount

    def _find_reached(self, call: CallKind) -> Iterator[tuple[Budget, Reached]]:
        for budget in self.chain():
            if budget.limits is None:
                continue
            spent = budget.sum_spent()
            for kind in _STOPS[call]:
                most = budget.limits.most(kind)
                if most and spent.get(kind, 0) >= most:
                    yield budget, Reached(kind, most, spent.get(kind, 0))
            # A refused tool call ends the work: the next request to the model is not made.
            if budget.limits.tool_calls and budget.refused:
                yield budget, Reached("tool_calls", budget.limits.tool_calls, spent.get("tool_calls", 0))


def _exceeding(budget: Budget, reached: Reached) -> LimitExceeded:
    """Make the error of a call that a limit of a budget forbids."""
    amount, short = format_amount(reached.kind, reached.limit), reached.spent < reached.limit
    text = f"too little of the limit of {amount} is left" if short else f"the limit of {amount} is used up"
    return LimitExceeded(text, budget, reached)


def counts_in(spent: Spent) -> dict[str, float]:
    """Return what can be added up of what was spent."""
    return {kind: spent[kind] for kind in _ADDED if spent.get(kind)}


def format_amount(kind: Kind, value: float) -> str:
    """Format how much of a kind there is."""
    forms = {"money": f"{value:.4g}", "seconds": f"{value:,.1f}".removesuffix(".0")}
    number, unit = forms.get(kind, f"{value:,.0f}"), _UNITS[kind]
    return f"{number} {unit.removesuffix('s') if number == '1' and kind.endswith('_calls') else unit}"


def describe_unpriced(name: str | None) -> str:
    """Describe that a model has no price, and how to give it one."""
    return (
        f"money is limited, and nothing says what model {name!r} costs; give "
        f"Limits(prices={{{name!r}: Price(input=..., output=...)}}), for a million tokens"
    )
