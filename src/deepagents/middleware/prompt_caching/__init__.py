"""Mark requests for the provider's prompt cache."""

from deepagents.middleware.prompt_caching.middleware import (
    AnthropicPromptCachingMiddleware,
    BedrockPromptCachingMiddleware,
    FireworksPromptCachingMiddleware,
    PromptCachingMiddleware,
)

__all__ = [
    "AnthropicPromptCachingMiddleware",
    "BedrockPromptCachingMiddleware",
    "FireworksPromptCachingMiddleware",
    "PromptCachingMiddleware",
]
