"""What providers say when a request is too long for their model, and what is to be learnt from that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from langchain_core.exceptions import ContextOverflowError

from deepagents.models.failures import status_of

_MOST_SCALED: Final = 8.0
_STATUS: Final = frozenset({400, 413, 422})
MARKERS: Final = (
    "context_length_exceeded",
    "context length exceeded",
    "contextwindowexceedederror",
    "maximum context length",
    "exceeds the context window",
    "exceed the context window",
    "exceeds the model's context",
    "exceeds the available context size",
    "exceed_context_size_error",
    "exceeds the limit of tokens",
    "exceeds the maximum number of tokens",
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens` must be",
    "input is too long",
    "input length and `max_tokens` exceed context limit",
    "input token count exceeds",
    "prompt is too long",
    "prompt too long",
    "request exceeds the maximum size",
    "request_too_large",
    "too many input tokens",
    "total number of tokens in the prompt cannot exceed",
    "tokens exceeds the max",
    "string_above_max_length",
    "model_max_prompt_tokens_exceeded",
)
"""In lower case: OpenAI, Anthropic, Google, Bedrock, Mistral, Cohere, Groq, xAI, LiteLLM, llama.cpp, vLLM,
TGI."""


def is_overflow(error: BaseException) -> bool:
    """Tell whether a provider refused a request because it is too long."""
    if isinstance(error, ContextOverflowError):
        return True
    if status_of(error) not in _STATUS:
        return False
    said = str(error).lower()
    return any(marker in said for marker in MARKERS)


def as_overflow(error: Exception) -> Exception:
    """Return the error to end with: the provider's own, or one of LangChain's kind that names it."""
    if isinstance(error, ContextOverflowError):
        return error
    overflow = ContextOverflowError(str(error))
    overflow.__cause__ = error
    return overflow


@dataclass(frozen=True, slots=True)
class Lesson:
    """What refusals have taught: by how much estimates fall short, or how much a model takes in truth."""

    scale: float = 1.0
    window: int | None = None

    def after(self, tokens: int, estimated: float, window: int | None) -> Lesson:
        """Learn from the refusal of a request that was counted as so many tokens, with this scale.

        Of these, `estimated` tokens (without the scale) are not known from a report. A refusal of less than
        the window says that estimates are too low; where they would be far too low, that the window is
        smaller, as it does where nobody knows the window.
        """
        if window is None:
            return Lesson(self.scale, tokens)
        missing = window - tokens
        if missing <= 0:
            return self
        if missing <= (_MOST_SCALED - self.scale) * estimated:
            return Lesson(self.scale + missing / estimated, self.window)
        return Lesson(window=tokens)
