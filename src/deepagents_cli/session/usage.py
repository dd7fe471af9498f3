"""Count the tokens that models use, and what they cost, by agent and model."""

from __future__ import annotations

import time
from asyncio import Task, TimerHandle, create_task, gather, get_running_loop, to_thread
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from deepagents.events import ApprovalRequest, Usage
from deepagents.limits import Tokens
from deepagents.models.prices import find_listed_price, price_of_model
from deepagents.models.traits import model_identifier
from deepagents_cli.approval.questions import Decision
from deepagents_cli.session.record import Record, Used
from deepagents_cli.session.session import Ask

_EVERY: Final = 0.25
"""Seconds between two messages."""
_LEAST_SHOWN: Final = 0.01


class UsageCounter:
    """Counts what a thread uses, and says so when something has changed, a few times a second at most."""

    def __init__(self, record: Record, say: Callable[[], None]) -> None:
        self._record = record
        self._say = say
        self._timer: TimerHandle | None = None
        self._pricing: set[Task[None]] = set()
        self._thread = ""
        self._used: dict[tuple[str, str], Used] = {}
        self.in_context: int | None = None

    async def open(self, thread: str, in_context: int | None) -> None:
        """Count for a thread, whose last model call had so many tokens."""
        await self.finish()
        self._thread, self.in_context = thread, in_context
        self._used = {(each.agent, each.model): each for each in await self._record.usage(thread)}

    @property
    def used(self) -> list[Used]:
        """What the thread has used, by agent and model."""
        return [*self._used.values()]

    def count(self, model: BaseChatModel, event: Usage) -> None:
        """Count a call, of this model or of the one that the event names."""
        if event.agent is None:
            self.in_context = event.input_tokens + event.output_tokens
        task = create_task(self._add(model, _used_by(event, model)))
        self._pricing.add(task)
        task.add_done_callback(self._pricing.discard)

    async def finish(self) -> None:
        """Wait until all is counted."""
        await gather(*self._pricing)

    async def _add(self, model: BaseChatModel, used: Used) -> None:
        # The list of prices takes a while to load, once.
        more = await to_thread(_with_cost, model, used)
        key = more.agent, more.model
        known = self._used.get(key, Used(*key))
        self._used[key] = total = Used(*key, *sum_used([known, more]))
        self._record.save_usage(self._thread, total)
        self.note_change()

    def note_change(self) -> None:
        """Say so soon."""
        if self._timer is None:
            self._timer = get_running_loop().call_later(_EVERY, self.flush)

    def flush(self) -> None:
        """Say now what has changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._say()


class Spending:
    """Counts what a run takes, of its subagents too, and the seconds without those of a person."""

    def __init__(
        self, model: BaseChatModel | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._model = model
        self._clock = clock
        self._began = clock()
        self._waited = 0.0
        self._calls: list[Used] = []

    def count(self, event: Usage) -> None:
        """Count a call of a model."""
        self._calls.append(_used_by(event, self._model))

    def without_waiting(self, ask: Ask) -> Ask:
        """Leave out the time in which a person is asked."""

        def asked(request: ApprovalRequest, agent: str | None) -> Decision:
            began = self._clock()
            try:
                return ask(request, agent)
            finally:
                self._waited += self._clock() - began

        return asked

    @property
    def seconds(self) -> float:
        """The seconds since the run began, without those in which a person was asked."""
        return self._clock() - self._began - self._waited

    def describe(self) -> str:
        """Return all of it as one line."""
        # Priced once, at the end: the list of prices takes a while to load.
        used = [_with_cost(self._model, each) for each in self._calls]
        tokens, cost = sum_used(used)
        parts = [f"{tokens.input:,} tokens in", f"{tokens.output:,} out"] if tokens != Tokens() else []
        if cost:
            money = f"${cost:,.2f}" if cost >= _LEAST_SHOWN else f"< ${_LEAST_SHOWN}"
            is_whole = all(each.cost is not None for each in used)
            parts.append(money if is_whole else f"{money} and what has no known price")
        return ", ".join([*parts, f"{self.seconds:.1f} s"])


def sum_used(used: Sequence[Used]) -> tuple[Tokens, float | None]:
    """Add up the tokens, and what is known of the cost; `None` where nothing is."""
    costs = [each.cost for each in used if each.cost is not None]
    return sum((each.tokens for each in used), Tokens()), sum(costs) if costs else None


def _used_by(event: Usage, model: BaseChatModel | None) -> Used:
    """Return what a call has used, of this model or of the one that the event names."""
    name = event.model or (model and model_identifier(model)) or type(model).__name__
    return Used(event.agent or "", name, event.tokens)


def _with_cost(model: BaseChatModel | None, used: Used) -> Used:
    """Add the cost by the price of the model, or of another one that has answered."""
    # Providers answer with the name of a version, as in `gpt-4.1-2025-04-14`.
    own = model_identifier(model) if model else None
    is_own = model and own and used.model.startswith(own)
    price = price_of_model(model) if model and is_own else find_listed_price(None, used.model)
    return replace(used, cost=used.tokens.cost(price) if price else None)


def last_context(messages: Sequence[BaseMessage]) -> int | None:
    """Return how many tokens the last model call of a history had."""
    usages = (each.usage_metadata for each in reversed(messages) if isinstance(each, AIMessage))
    found = next(filter(None, usages), None)
    return found["total_tokens"] if found else None
