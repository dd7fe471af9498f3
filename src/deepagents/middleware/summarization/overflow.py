"""Recognise what providers answer when a request is too long for their model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from langchain_core.exceptions import ContextOverflowError

from deepagents.models.failures import status_of

_TOO_LARGE: Final = 413
# Refused for another reason, though the text may speak of tokens: keys, missing models, rate limits.
_OTHER_STATUS: Final = frozenset({401, 403, 404, 408, 409, 429})
# A refusal may repeat the whole request.
_MOST_TEXT: Final = 20_000
MARKERS: Final = (
    "context_length_exceeded",
    "context length exceeded",
    "contextwindowexceedederror",
    "maximum context length",
    "exceeds the context length",
    "exceeds the context window",
    "exceed the context window",
    "exceeds the model's context",
    "exceeds the available context size",
    "exceed_context_size_error",
    "exceeds the limit of tokens",
    "exceeds the maximum number of tokens",
    "greater than the context length",
    "when context the overflows",
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens` must be",
    "input is too long",
    "input length exceeds",
    "input length and `max_tokens` exceed context limit",
    "input token count exceeds",
    "prompt is too long",
    "prompt too long",
    "request entity too large",
    "request exceeds the maximum size",
    "request_too_large",
    "too many input tokens",
    "total number of tokens in the prompt cannot exceed",
    "tokens exceeds the max",
    "string_above_max_length",
    "model_max_prompt_tokens_exceeded",
)
"""In lower case: OpenAI, Anthropic, Google, Bedrock, Mistral, Cohere, Groq, xAI, LiteLLM, llama.cpp,
LM Studio, Ollama, vLLM, TGI."""


def is_overflow(error: BaseException) -> bool:
    """Return whether a provider refused a request because it is too long."""
    return any(map(_is_refusal, _causes(error, set())))


def as_overflow(error: Exception) -> Exception:
    """Return the error to end with: the provider's own, or one of LangChain's kind that names it."""
    if isinstance(error, ContextOverflowError):
        return error
    overflow = ContextOverflowError(str(error))
    overflow.__cause__ = error
    return overflow


def _causes(error: BaseException, seen: set[int]) -> Iterator[BaseException]:
    """Walk over an error, what it was raised from, and the members of a group."""
    if id(error) in seen:
        return
    seen.add(id(error))
    yield error
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _causes(each, seen)
    if error.__cause__ is not None:
        yield from _causes(error.__cause__, seen)


def _is_refusal(error: BaseException) -> bool:
    if isinstance(error, ContextOverflowError):
        return True
    status = status_of(error)
    if status == _TOO_LARGE:
        return True
    body: Any = getattr(error, "body", None)
    # A plain exception that happens to use such words is none: it has neither a status nor an answer.
    if status in _OTHER_STATUS or (status is None and body is None and not hasattr(error, "response")):
        return False
    text = f"{error} {body!r}"[:_MOST_TEXT].lower()
    return any(marker in text for marker in MARKERS)
