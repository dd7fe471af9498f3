"""Count every call of a model or a tool that is made below an agent with limits, whatever makes it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, manager
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphBubbleUp

from deepagents._async import setting
from deepagents._values import replace, valueclass
from deepagents.errors import ConfigError, LimitExceeded
from deepagents.limits import Kind, Price, Tokens
from deepagents.middleware.limits.budget import Budget, describe_unpriced
from deepagents.middleware.limits.need import Hold
from deepagents.middleware.limits.persistence import current_budget, running_spent, save_call, spending_from
from deepagents.middleware.limits.reservation import claim_hold, hold_outside
from deepagents.models.prices import find_listed_price
from deepagents.tools._tool import CHARACTERS_PER_TOKEN

_CALLBACK: ContextVar[UsageCallback | None] = ContextVar("deepagents_usage", default=None)


@valueclass
class _ModelCall:
    budget: Budget
    model: str
    price: Price | None
    hold: Hold | None
    estimate_input: Callable[[], int]


class UsageCallback(BaseCallbackHandler):
    """Counts for the budget that is current where a call is made, or else for the one of the whole run."""

    # An error raised here stops the call before it is made; LangChain logs and drops it otherwise.
    raise_error = True
    # In the calling thread, where the current budget is known.
    run_inline = True

    def __init__(self, whole: Budget) -> None:
        self._whole = whole
        self._open: dict[UUID, _ModelCall] = {}
        self._lock = Lock()

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **more: Any
    ) -> None:
        """Count a request before it is made.

        Raises:
            LimitExceeded: when it may not be made.
            ConfigError: when money is limited and its price is not known.
        """
        given = messages[0] if messages else []
        self._begin(run_id, more, lambda: count_tokens_approximately(given))

    def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **more: Any
    ) -> None:
        """Count a request to a model that takes plain text."""
        # Four characters for a token, as `count_tokens_approximately` takes.
        self._begin(run_id, more, lambda: sum(map(len, prompts)) // 4)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        """Count what an answered request used."""
        with self._lock:
            call = self._open.pop(run_id, None)
        if call is None:
            return
        # An estimate takes time, and without a limit of tokens or money nothing depends on it.
        limited = call.budget.is_limited("tokens", "money")
        tokens = find_tokens(response)
        if limited:
            # What middleware has not seen may be anything, and resembles no other request.
            if call.hold and call.hold.is_claimed and tokens and tokens.input:
                call.budget.learn_report(call.model, call.hold.estimate, tokens.input)
            tokens = _credible(tokens or Tokens(), response, call.estimate_input)
        if tokens is None:
            return
        spent: dict[Kind, float] = {"tokens": tokens.input + tokens.output}
        if call.price is not None:
            spent["money"] = tokens.cost(call.price)
        # Under one lock: nobody finds what was held free before it is counted.
        with call.budget.lock:
            for kind, amount in spent.items():
                call.budget.add(kind, amount)
            if call.hold:
                call.budget.release(call.hold)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Forget a request that failed: it was counted, and no usage of it is known."""
        with self._lock:
            call = self._open.pop(run_id, None)
        if call and call.hold:
            call.budget.release(call.hold)

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **more: Any) -> None:
        """Count a tool call before it is made.

        Raises:
            LimitExceeded: when it may not be made.
        """
        if error := self._budget().start("tool_calls"):
            raise error

    def _budget(self) -> Budget:
        return current_budget() or self._whole

    def _begin(self, run_id: UUID, about: Mapping[str, Any], estimate_input: Callable[[], int]) -> None:
        metadata: Mapping[str, Any] = about.get("metadata") or {}
        budget, provider, name = self._budget(), metadata.get("ls_provider"), metadata.get("ls_model_name")
        price = budget.price(provider, name)
        if price is None and budget.is_limited("money"):
            price = find_listed_price(provider, name)
            if price is None:
                raise ConfigError(describe_unpriced(name))
        hold = claim_hold()
        if hold is None and budget.is_limited("tokens", "money"):
            settings: Mapping[str, Any] = about.get("invocation_params") or {}
            estimate = estimate_input() + len(repr(settings.get("tools") or "")) // CHARACTERS_PER_TOKEN
            hold = hold_outside(budget, name or "", estimate, settings, price)
        # After that: a call for which nothing is left is not made, and not counted.
        if error := budget.start("model_calls"):
            if hold:
                budget.release(hold)
            raise error
        if hold:
            estimate_input = partial(getattr, hold, "estimate")
        with self._lock:
            self._open[run_id] = _ModelCall(budget, name or "", price, hold, estimate_input)


@contextmanager
def counting(call: Budget) -> Generator[None]:
    """Count for this budget what is called meanwhile."""
    _register()
    # One handler for all agents of a run: two would count each call twice.
    with setting(_CALLBACK, _CALLBACK.get() or UsageCallback(call)), spending_from(call):
        yield


@contextmanager
def counting_between_steps() -> Generator[None]:
    """Count what middleware calls between the steps of an agent, where that has limits."""
    channel = running_spent()
    agent = channel.budget if channel else None
    if agent is None:
        yield
        return
    call = agent.for_call()
    try:
        with counting(call):
            yield
    except GraphBubbleUp:
        # A question is not a failure: the step runs again, and the call would be counted twice.
        raise
    except Exception:
        agent.keep(call)
        raise
    save_call(agent, call)


def is_used_up() -> bool:
    """Return whether the running agent may ask its model no more."""
    channel = running_spent()
    return bool(channel and channel.budget and channel.budget.find_reached("model_calls"))


@cache
def _register() -> None:
    """Let LangChain give the callback to all that is called below; once in a process.

    LangChain logs a warning for each callback that raises, and at a limit that is what this one does.
    """
    register_configure_hook(_CALLBACK, inheritable=True)
    logging.getLogger(manager.__name__).addFilter(_is_no_limit)


def _is_no_limit(record: logging.LogRecord) -> bool:
    return not isinstance(sys.exception(), LimitExceeded)


def find_tokens(response: LLMResult) -> Tokens | None:
    """Return what an answer took, where its provider tells."""
    message = _message(response)
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return Tokens.of(usage) if usage else None


def _credible(reported: Tokens, response: LLMResult, estimate_input: Callable[[], int]) -> Tokens:
    """Estimate each count that is zero: a server that reports none must not keep a limit from holding."""
    message = _message(response)
    written = reported.output or (count_tokens_approximately([message]) if message else 0)
    return replace(reported, input=reported.input or estimate_input(), output=written)


def _message(response: LLMResult) -> BaseMessage | None:
    generations: Sequence[Sequence[Any]] = response.generations
    first = generations[0][0] if generations and generations[0] else None
    message: object = getattr(first, "message", None)
    return message if isinstance(message, BaseMessage) else None
