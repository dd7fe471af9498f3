"""Count tokens as OpenAI's models do."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


def count_tokens(text: str) -> int:
    """Return how many tokens a text is."""
    return len(_encoding().encode(text))


# The package reads three large tables as it is imported, which every worker would do to collect tests.
@cache
def _encoding() -> Any:
    return import_module("bpe_openai").get_encoding("o200k_base")
