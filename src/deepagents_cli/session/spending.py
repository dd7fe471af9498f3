"""What a run took: tokens, money as far as prices are known, and seconds, without those of a person."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from langchain_core.language_models import BaseChatModel

from deepagents.events import ApprovalRequest, Usage
from deepagents.limits import Price
from deepagents.models.prices import find_listed_price, price_of_model
from deepagents.models.traits import model_identifier
from deepagents_cli.approval.questions import Decision
from deepagents_cli.session.session import Ask

_LEAST_SHOWN: Final = 0.01
"""In the currency of the price list."""


def find_price(model: BaseChatModel | None, name: str) -> Price | None:
    """Return the price of the model, or of another one that has answered."""
    # Providers answer with the name of a version, as in `gpt-4.1-2025-04-14`.
    own = model_identifier(model) if model else None
    return price_of_model(model) if model and own and name.startswith(own) else find_listed_price(None, name)


class Spending:
    """Counts what a run takes, of its subagents too."""

    def __init__(
        self, model: BaseChatModel | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._model = model
        self._clock = clock
        self._began = clock()
        self._waited = 0.0
        self._calls: list[Usage] = []

    def count(self, event: Usage) -> None:
        """Count a call of a model."""
        self._calls.append(event)

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
        read = sum(each.input_tokens for each in self._calls)
        written = sum(each.output_tokens for each in self._calls)
        tokens = [f"{read:,} tokens in", f"{written:,} out"] if read or written else []
        return ", ".join([*tokens, *self._money(), f"{self.seconds:.1f} s"])

    def _money(self) -> list[str]:
        # Once, at the end: the list of prices takes a while to load.
        costs = [self._cost(each) for each in self._calls]
        known = [each for each in costs if each is not None]
        if not sum(known):
            return []
        money = f"${sum(known):,.2f}" if sum(known) >= _LEAST_SHOWN else f"< ${_LEAST_SHOWN}"
        return [money if len(known) == len(costs) else f"{money} and what has no known price"]

    def _cost(self, event: Usage) -> float | None:
        name = event.model or (model_identifier(self._model) if self._model else None)
        price = find_price(self._model, name) if name else None
        if price is None:
            return None
        return price.of(
            event.input_tokens, event.output_tokens, event.cached_tokens, event.cache_write_tokens
        )
