"""Count the tokens that a thread uses, and what they cost, by agent and model."""

from __future__ import annotations

from asyncio import Task, TimerHandle, create_task, gather, get_running_loop, to_thread
from collections.abc import Callable, Sequence
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from deepagents.events import Usage
from deepagents.models.traits import model_identifier
from deepagents_cli.session.record import Record, Used
from deepagents_cli.session.spending import find_price

_EVERY: Final = 0.25
"""Seconds between two messages."""


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
        name = event.model or model_identifier(model) or type(model).__name__
        if event.agent is None:
            self.in_context = event.input_tokens + event.output_tokens
        self._add(
            Used(
                event.agent or "",
                name,
                event.input_tokens,
                event.output_tokens,
                event.cached_tokens,
                event.cache_write_tokens,
            )
        )
        task = create_task(self._add_cost(model, name, event))
        self._pricing.add(task)
        task.add_done_callback(self._pricing.discard)

    async def finish(self) -> None:
        """Wait until all that was counted has its cost."""
        await gather(*self._pricing)

    async def _add_cost(self, model: BaseChatModel, name: str, event: Usage) -> None:
        # The list of prices takes a while to load, once; tokens go on being shown meanwhile.
        price = await to_thread(find_price, model, name)
        if price is not None:
            cost = price.of(
                event.input_tokens, event.output_tokens, event.cached_tokens, event.cache_write_tokens
            )
            self._add(Used(event.agent or "", name, cost=cost))

    def _add(self, more: Used) -> None:
        known = self._used.get((more.agent, more.model), Used(more.agent, more.model))
        costs = [each for each in (known.cost, more.cost) if each is not None]
        self._used[more.agent, more.model] = total = Used(
            more.agent,
            more.model,
            known.input + more.input,
            known.output + more.output,
            known.cached + more.cached,
            known.cache_written + more.cache_written,
            sum(costs) if costs else None,
        )
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


def cost_of(used: Sequence[Used]) -> float | None:
    """Add up what is known of the cost; `None` where nothing is."""
    known = [each.cost for each in used if each.cost is not None]
    return sum(known) if known else None


def last_context(messages: Sequence[BaseMessage]) -> int | None:
    """Return how many tokens the last model call of a history had."""
    usages = (each.usage_metadata for each in reversed(messages) if isinstance(each, AIMessage))
    found = next(filter(None, usages), None)
    return found["total_tokens"] if found else None
