"""Count the tokens that models use, and what they cost, by agent and model."""

from __future__ import annotations

from asyncio import Task, TimerHandle, create_task, gather, get_running_loop, to_thread
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from deepagents.events import CacheBroken, Usage
from deepagents.limits import Tokens
from deepagents.models.prices import find_listed_price, price_of_model
from deepagents.models.traits import model_identifier
from deepagents_cli.session.threads.record import Record, Used

_EVERY: Final = 0.25
"""Seconds between two messages."""
_LEAST_SHOWN: Final = 0.01


class UsageCounter:
    """Counts what models use: what a thread that is open uses is kept with it.

    `say` is called when that has changed, a few times a second at most.
    """

    def __init__(self, record: Record, say: Callable[[], None]) -> None:
        self._record = record
        self._say = say
        self._timer: TimerHandle | None = None
        self._pricing: set[Task[None]] = set()
        self._thread = ""
        self._used: dict[tuple[str, str], Used] = {}
        self.calls: list[tuple[BaseChatModel, Used]] = []
        """What was used without a thread."""
        self.breaks: dict[str, tuple[int, int]] = {}
        """How often the cache of the thread was broken, and how many tokens that lost, by reason."""
        self.in_context: int | None = None

    async def open(self, thread: str, in_context: int | None) -> None:
        """Count for a thread, whose last model call had so many tokens."""
        await self.finish()
        self._thread, self.in_context = thread, in_context
        self._used = {(each.agent, each.model): each for each in await self._record.usage(thread)}
        self.breaks = await self._record.breaks(thread)

    @property
    def used(self) -> list[Used]:
        """What the thread has used, by agent and model."""
        return [*self._used.values()]

    def count(self, model: BaseChatModel, event: Usage) -> None:
        """Count a call, of this model or of the one that the event names."""
        used = used_by(event, model)
        if not self._thread:
            self.calls.append((model, used))
            return
        if event.agent is None:
            self.in_context = event.input_tokens + event.output_tokens
        task = create_task(self._add(model, used))
        self._pricing.add(task)
        task.add_done_callback(self._pricing.discard)

    def count_break(self, event: CacheBroken) -> None:
        """Count a request that a cache serves less of."""
        if self._thread:
            reason = event.reason or "other"
            count, tokens = self.breaks.get(reason, (0, 0))
            self.breaks[reason] = count + 1, tokens + event.lost_tokens
            self._record.save_breaks(self._thread, reason, *self.breaks[reason])

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
        if self._timer is None:
            self._timer = get_running_loop().call_later(_EVERY, self.flush)

    def flush(self) -> None:
        """Say now what has changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._say()


def describe_calls(calls: Iterable[tuple[BaseChatModel, Used]]) -> str:
    """Say what calls used; they are priced now, since the list of prices takes a while to load."""
    used = [_with_cost(model, each) for model, each in calls]
    tokens, cost = sum_used(used)
    parts = [f"{tokens.input:,} tokens in", f"{tokens.output:,} out"] if tokens != Tokens() else []
    if cost:
        money = f"${cost:,.2f}" if cost >= _LEAST_SHOWN else f"< ${_LEAST_SHOWN}"
        is_whole = all(each.cost is not None for each in used)
        parts.append(money if is_whole else f"{money} and what has no known price")
    return ", ".join(parts)


def sum_used(used: Sequence[Used]) -> tuple[Tokens, float | None]:
    """Add up the tokens, and what is known of the cost; `None` where nothing is."""
    costs = [each.cost for each in used if each.cost is not None]
    return sum((each.tokens for each in used), Tokens()), sum(costs) if costs else None


def used_by(event: Usage, model: BaseChatModel) -> Used:
    """Return what a call has used, of this model or of the one that the event names."""
    name = event.model or model_identifier(model) or type(model).__name__
    return Used(event.agent or "", name, event.tokens)


def _with_cost(model: BaseChatModel, used: Used) -> Used:
    """Add the cost by the price of the model, or of another one that has answered."""
    # Providers answer with the name of a version, as in `gpt-4.1-2025-04-14`.
    own = model_identifier(model)
    price = (
        price_of_model(model) if own and used.model.startswith(own) else find_listed_price(None, used.model)
    )
    return replace(used, cost=used.tokens.cost(price) if price else None)


def last_context(messages: Sequence[BaseMessage]) -> int | None:
    """Return how many tokens the last model call of a history had."""
    usages = (each.usage_metadata for each in reversed(messages) if isinstance(each, AIMessage))
    found = next(filter(None, usages), None)
    return found["total_tokens"] if found else None
