"""Count tokens as OpenAI's models do."""

from __future__ import annotations

from functools import cache

import bpe_openai


def count_tokens(text: str) -> int:
    """Return how many tokens a text is."""
    return len(_encoding().encode(text))


# Its table takes a second to read, which every worker would spend on collecting tests.
@cache
def _encoding() -> bpe_openai.Encoding:
    return bpe_openai.get_encoding("o200k_base")
