"""Mark requests for the provider's prompt cache."""

from deepagents.middleware.prompt_caching.breaks import CacheBreakMiddleware
from deepagents.middleware.prompt_caching.marks import is_chat_anthropic as is_chat_anthropic
from deepagents.middleware.prompt_caching.marks import with_own_mark as with_own_mark
from deepagents.middleware.prompt_caching.middleware import STAND_INS as STAND_INS
from deepagents.middleware.prompt_caching.middleware import (
    AnthropicPromptCachingMiddleware,
    BedrockPromptCachingMiddleware,
    FireworksPromptCachingMiddleware,
    PromptCachingMiddleware,
)

__all__ = [
    "AnthropicPromptCachingMiddleware",
    "BedrockPromptCachingMiddleware",
    "CacheBreakMiddleware",
    "FireworksPromptCachingMiddleware",
    "PromptCachingMiddleware",
]
