"""Mark requests for the provider's prompt cache."""

from deepagents.middleware.prompt_caching.markers import is_chat_anthropic, with_own_mark
from deepagents.middleware.prompt_caching.middleware import (
    STAND_INS,
    AnthropicPromptCachingMiddleware,
    BedrockPromptCachingMiddleware,
    FireworksPromptCachingMiddleware,
    PromptCachingMiddleware,
)

__all__ = [
    "STAND_INS",
    "AnthropicPromptCachingMiddleware",
    "BedrockPromptCachingMiddleware",
    "FireworksPromptCachingMiddleware",
    "PromptCachingMiddleware",
    "is_chat_anthropic",
    "with_own_mark",
]
