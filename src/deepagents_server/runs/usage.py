"""Count what the calls of models take that a run makes, whatever makes them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult

from deepagents.limits import Tokens
from deepagents.middleware.limits import find_tokens
from deepagents.models.prices import find_listed_price
from deepagents_server.metrics import Metrics

_Called = tuple[str | None, str, float]
"""The provider and the name of a model, and when it was asked."""


class ModelCalls(BaseCallbackHandler):
    """Counts the calls of one run."""

    # In the calling thread: tools that block may have taken all others.
    run_inline = True

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._open: dict[UUID, _Called] = {}

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[Any], *, run_id: UUID, **more: Any
    ) -> None:
        """Note which model is asked, and when."""
        self._begin(run_id, more.get("metadata") or {})

    def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **more: Any
    ) -> None:
        """Note the same of a model that takes plain text."""
        self._begin(run_id, more.get("metadata") or {})

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        """Count what an answer took."""
        if (called := self._open.pop(run_id, None)) is None:
            return
        provider, name, began = called
        self._metrics.model_seconds.labels(name).observe(time.monotonic() - began)
        if tokens := find_tokens(response):
            self._count(provider, name, tokens)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Count a call that failed."""
        if called := self._open.pop(run_id, None):
            self._metrics.model_errors.labels(called[1], type(error).__name__).inc()

    def _begin(self, run_id: UUID, metadata: Mapping[str, Any]) -> None:
        name = str(metadata.get("ls_model_name") or "unknown")
        self._open[run_id] = (metadata.get("ls_provider"), name, time.monotonic())

    def _count(self, provider: str | None, name: str, tokens: Tokens) -> None:
        self._metrics.tokens.labels(name, "input").inc(tokens.input)
        self._metrics.tokens.labels(name, "output").inc(tokens.output)
        self._metrics.tokens.labels(name, "cache_read").inc(tokens.cached)
        # To import the list of prices takes half a second, once.
        self._metrics.background.submit(self._count_cost, provider, name, tokens)

    def _count_cost(self, provider: str | None, name: str, tokens: Tokens) -> None:
        if price := find_listed_price(provider, name):
            self._metrics.cost.labels(name).inc(tokens.cost(price))
