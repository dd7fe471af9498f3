"""Keep from others what a request to a model may cost, before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextvars import ContextVar
from typing import Any

from langchain_core.messages import AnyMessage

from deepagents._async import IOCall, running_loop, setting, within
from deepagents.limits import Price
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._incremental import IncrementalCache
from deepagents.middleware._requests import Request, Response, with_changes, with_messages
from deepagents.middleware.limits.budget import Budget
from deepagents.middleware.limits.need import AMPLE_ANSWER, Hold, Need
from deepagents.middleware.limits.persistence import current_budget
from deepagents.middleware.summarization.counting import ContextCounter
from deepagents.models.prices import find_listed_price
from deepagents.models.traits import (
    ANSWER_SETTING,
    answer_field,
    answer_in,
    largest_answer,
    model_identifier,
    model_provider,
    thinking_bound,
)

_HOLD: ContextVar[Hold | None] = ContextVar("deepagents_hold", default=None)


class ReservationMiddleware(BaseMiddleware):
    """Reserve tokens and money for each request to a model, where a limit binds the agent.

    It stands next to the model and sees a request as it is sent. The request waits while others hold what it
    needs. Where little is left, its answer is bounded, if the model has a field for that.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counter = ContextCounter()
        self._known = IncrementalCache[int]()

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        budget, outer = current_budget(), _HOLD.get()
        # A model that asks another one to answer has reserved for both.
        nested = outer is not None and outer.is_open
        if budget is None or nested or not budget.is_limited("tokens", "money"):
            return await inner(handler, request)
        need = self._estimate(with_messages(request), budget)
        hold = await _hold(budget, need)
        try:
            with setting(_HOLD, hold):
                return await inner(handler, _with_bound(request, need, hold.answer))
        finally:
            budget.release(hold)

    def _estimate(self, request: Request, budget: Budget) -> Need:
        model, settings = request.model, request.model_settings
        name, provider = model_identifier(model), model_provider(model)
        estimate = self._known.of(request.messages, int, self._add)
        estimate += self._counter.count_fixed(request.system_message, request.tools)
        price = budget.price(provider, name)
        if price is None and budget.is_limited("money"):
            price = find_listed_price(provider, name)
        return Need(
            estimate,
            budget.correct(name or "", estimate),
            largest_answer(model, settings) or AMPLE_ANSWER,
            price,
            thinking_bound(model, settings),
            answer_field(model) is not None,
        )

    def _add(self, counted: int, messages: Sequence[AnyMessage]) -> int:
        return counted + self._counter.estimate(messages)


def claim_hold() -> Hold | None:
    """Return what is held for the call that begins, once."""
    hold = _HOLD.get()
    if hold is None or hold.is_claimed or not hold.is_open:
        return None
    hold.is_claimed = True
    return hold


def hold_outside(
    budget: Budget, name: str, estimate: int, settings: Mapping[str, Any], price: Price | None
) -> Hold | None:
    """Hold what a request may cost that no middleware has seen, such as that of a tool or a grader.

    `None` where nothing limits it, or where the request is a part of one that is held. Its answer cannot be
    bounded, and it does not wait: it may be made by what others wait for.

    Raises:
        LimitExceeded: when no answer of any use would fit.
    """
    outer = _HOLD.get()
    if (outer is not None and outer.is_open) or not budget.is_limited("tokens", "money"):
        return None
    answer = answer_in(settings) or AMPLE_ANSWER
    need = Need(estimate, budget.correct(name, estimate), answer, price, is_bounded=False)
    found = budget.hold(need, waits=False)
    return found if isinstance(found, Hold) else None


async def _hold(budget: Budget, need: Need) -> Hold:
    can_wait = True
    while True:
        found = budget.hold(need, waits=can_wait)
        if isinstance(found, Hold):
            return found
        can_wait = await _wait(found, budget.seconds_left())


def _wait(room: Future[None], seconds: float | None) -> IOCall[bool]:
    """Wait for room; return whether it is of use to wait again."""

    def block() -> bool:
        # Those who are waited for may run on the event loop of this thread.
        if running_loop():
            return False
        try:
            room.result(seconds)
        except Late:
            return False
        return True

    async def wait() -> bool:
        try:
            await within(seconds, asyncio.wrap_future(room))
        except TimeoutError:
            return False
        return True

    return IOCall(block, wait)


def _with_bound(request: Request, need: Need, answer: int) -> Request:
    name = answer_field(request.model)
    if name is None or answer >= need.answer:
        return request
    if name == ANSWER_SETTING:
        return with_changes(request, model_settings={**request.model_settings, ANSWER_SETTING: answer})
    # Their calls take no such setting.
    return with_changes(request, model=request.model.model_copy(update={name: answer}))
