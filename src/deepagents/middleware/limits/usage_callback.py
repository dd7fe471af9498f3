"""Counts every call of a model or a tool that is made below an agent with limits, whoever makes it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, manager
from langchain_core.messages import AIMessage, BaseMessage, UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphBubbleUp

from deepagents.errors import ConfigError, LimitExceeded
from deepagents.limits import Kind, Price
from deepagents.middleware.limits.budget import Account, Call
from deepagents.middleware.limits.persistence import channel_here, counting_for, current, settle

_UNITS: Final[Mapping[Kind, str]] = {
    "tokens": "tokens",
    "money": "in cost",
    "seconds": "seconds",
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "repeats": "identical calls in a row",
}

_LASTING: Final = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
"""Where Anthropic's package tells of tokens written to a cache when it knows for how long."""
_METER: ContextVar[Meter | None] = ContextVar("deepagents_meter", default=None)


@dataclass(frozen=True, slots=True)
class _Asked:
    account: Account
    price: Price | None
    measured: Callable[[], int]


class Meter(BaseCallbackHandler):
    """Counts for the account that is current where a call is made, or else for the one of the whole run."""

    raise_error = True
    run_inline = True

    def __init__(self, whole: Account) -> None:
        self._whole = whole
        self._asked: dict[UUID, _Asked] = {}
        self._lock = Lock()

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **more: Any
    ) -> None:
        """Count a request before it is made.

        Raises:
            LimitExceeded: when it may not be made.
            ConfigError: when it costs nobody knows what, and money is limited.
        """
        given = messages[0] if messages else []
        self._begin(run_id, more.get("metadata"), lambda: count_tokens_approximately(given))

    def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **more: Any
    ) -> None:
        """Count a request to a model that is none for chats."""
        self._begin(run_id, more.get("metadata"), lambda: sum(map(len, prompts)) // 4)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        """Count what an answered request used."""
        with self._lock:
            asked = self._asked.pop(run_id, None)
        if asked is None:
            return
        if not asked.account.limited("tokens", "money"):
            usage = _reported(response)
        else:
            usage = _credible_usage(response, asked.measured)
        if usage is None:
            return
        asked.account.add("tokens", usage["input_tokens"] + usage["output_tokens"])
        if asked.price is not None:
            asked.account.add("money", _cost(usage, asked.price))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Forget a request that failed: it was counted, and used nothing that it told of."""
        with self._lock:
            self._asked.pop(run_id, None)

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **more: Any) -> None:
        """Count a tool call before it is made.

        Raises:
            LimitExceeded: when it may not be made.
        """
        _begin_call(current() or self._whole, "tool_calls")

    def _begin(self, run_id: UUID, metadata: Mapping[str, Any] | None, measured: Callable[[], int]) -> None:
        account = current() or self._whole
        told = metadata or {}
        price = account.price(told.get("ls_provider"), told.get("ls_model_name"))
        if price is None and account.limited("money"):
            raise ConfigError(unpriced(told.get("ls_model_name")))
        _begin_call(account, "model_calls")
        with self._lock:
            self._asked[run_id] = _Asked(account, price, measured)


def amount(kind: Kind, value: float) -> str:
    """Say how much of a kind there is."""
    forms = {"money": f"{value:.4g}", "seconds": f"{value:,.1f}".removesuffix(".0")}
    said, unit = forms.get(kind, f"{value:,.0f}"), _UNITS[kind]
    return f"{said} {unit.removesuffix('s') if said == '1' and kind.endswith('_calls') else unit}"


def unpriced(name: str | None) -> str:
    """Say that a model has no price."""
    return (
        f"money is limited, and nothing says what model {name!r} costs; give "
        f"Limits(prices={{{name!r}: Price(input=..., output=...)}}), for a million tokens"
    )


@contextmanager
def counting(call: Account) -> Generator[None]:
    """Count for this account what is called meanwhile."""
    _hook_in()
    with ExitStack() as stack:
        stack.enter_context(counting_for(call))
        if _METER.get() is None:
            token = _METER.set(Meter(call))
            stack.callback(_METER.reset, token)
        yield


@contextmanager
def counted() -> Generator[None]:
    """Count what middleware calls between the steps of an agent, where anybody counts."""
    channel = channel_here()
    agent = channel.account if channel else None
    if agent is None:
        yield
        return
    call = agent.call()
    try:
        with counting(call):
            yield
    except GraphBubbleUp:
        raise
    except Exception:
        agent.keep(call)
        raise
    settle(agent, call)


def used_up() -> bool:
    """Tell whether the running agent may ask its model no more."""
    channel = channel_here()
    return bool(channel and channel.account and channel.account.stopping("model_calls"))


@cache
def _hook_in() -> None:
    """Let LangChain give the meter to all that is called below, without a warning where it stops; once."""
    register_configure_hook(_METER, inheritable=True)
    logging.getLogger(manager.__name__).addFilter(_is_no_limit)


def _is_no_limit(record: logging.LogRecord) -> bool:
    return not isinstance(sys.exception(), LimitExceeded)


def _begin_call(account: Account, call: Call) -> None:
    if account.redeem(call):
        return
    if reached := account.reserve(call):
        raise LimitExceeded(f"the limit of {amount(reached.kind, reached.limit)} is used up")
    account.redeem(call)


def _reported(response: LLMResult) -> UsageMetadata | None:
    message = _message(response)
    return message.usage_metadata if isinstance(message, AIMessage) else None


def _credible_usage(response: LLMResult, estimate_input: Callable[[], int]) -> UsageMetadata:
    """Return the reported usage, with an estimate in the place of each count that is zero or less.

    A server that reports nothing real must not keep a limit from being reached.
    """
    reported = _reported(response)
    read = reported["input_tokens"] if reported else 0
    written = reported["output_tokens"] if reported else 0
    if reported and read > 0 and written > 0:
        return reported
    if written <= 0 and (message := _message(response)):
        written = count_tokens_approximately([message])
    read = read if read > 0 else estimate_input()
    usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    if reported and (details := reported.get("input_token_details")):
        usage["input_token_details"] = details
    return usage


def _message(response: LLMResult) -> BaseMessage | None:
    generations: Sequence[Sequence[Any]] = response.generations
    first = generations[0][0] if generations and generations[0] else None
    message: object = getattr(first, "message", None)
    return message if isinstance(message, BaseMessage) else None


def _cost(usage: UsageMetadata, price: Price) -> float:
    details: Mapping[str, Any] = usage.get("input_token_details") or {}
    written = details.get("cache_creation") or sum(details.get(key) or 0 for key in _LASTING)
    cached = max(details.get("cache_read") or 0, 0)
    return price.of(usage["input_tokens"], usage["output_tokens"], cached, max(written, 0))
