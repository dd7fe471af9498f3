"""Know what a model costs: by its profile, or by the price list of genai-prices, where that is installed.

The list is the one of the installed version; nothing is fetched.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from deepagents._values import frozenclass
from deepagents.limits import Price, price_of_profile
from deepagents.models.traits import is_served_here, model_identifier, model_provider

_FREE: Final = Price(0, 0)
_LISTED_AS: Final = {
    "amazon_bedrock": "aws",
    "bedrock": "aws",
    "bedrock_converse": "aws",
    "google_genai": "google",
    "google_vertexai": "google",
    "mistralai": "mistral",
    "xai": "x-ai",
}
"""What the list calls a provider, where LangChain calls it something else."""


@frozenclass
class ListedPrice(Price):
    """A price of the list, which may depend on the length of the input; the fields hold that of long ones."""

    listed: Any = None

    def of(self, read: int, written: int, cached: int = 0, cache_written: int = 0) -> float:
        """Return what a call costs; the input tokens hold those read from and written to a cache."""
        return _calculate(self.listed, read, written, cached, cache_written)


def price_of_model(model: BaseChatModel) -> Price | None:
    """Return what a million tokens of a model cost; nothing for one on this machine, `None` if unknown."""
    if is_served_here(model):
        return _FREE
    return price_of_profile(getattr(model, "profile", None)) or find_listed_price(
        model_provider(model), model_identifier(model)
    )


@cache
def find_listed_price(provider: str | None, name: str | None) -> Price | None:
    """Return the price of a model in the list; `None` where it is not in it, or there is no list."""
    # Importing the list takes a third of a second, so it waits for a model whose price is asked for.
    if name is None or find_spec("genai_prices") is None:
        return None
    from genai_prices import Usage, calc_price

    for provider_id in dict.fromkeys((_LISTED_AS.get(provider or "", provider), None)):
        try:
            found = calc_price(Usage(input_tokens=1, output_tokens=1), name, provider_id=provider_id)
        except (LookupError, ValueError):
            continue
        listed = found.model_price
        return ListedPrice(_calculate(listed, 10**6, 0), _calculate(listed, 0, 10**6), listed=listed)
    return None


def _calculate(listed: Any, read: int, written: int, cached: int = 0, cache_written: int = 0) -> float:
    from genai_prices import Usage

    # A server may report more cached tokens than there were tokens, which the list refuses.
    cached = min(max(cached, 0), read)
    usage = Usage(
        input_tokens=read,
        output_tokens=written,
        cache_read_tokens=cached,
        cache_write_tokens=min(max(cache_written, 0), read - cached),
    )
    return float(listed.calc_price(usage)["total_price"])
