"""Recognise failures of a model: those that may be temporary, and requests that are too long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from langchain_core.exceptions import ContextOverflowError, ModelError
from pydantic import ValidationError

from deepagents.errors import HarnessError

_PASSING: Final = frozenset({408, 409, 425, 429})
_FAULTS: Final = (
    *(HarnessError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(NotImplementedError, TypeError, ValidationError),
)
"""Mistakes in a program, which are there the next time as well."""
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


def may_pass(error: Exception) -> bool:
    """Return whether the same request, made again, may well be answered."""
    if isinstance(error, ModelError):
        return error.is_retryable
    status = status_of(error)
    if status is None:
        return not isinstance(error, _FAULTS)
    return status in _PASSING or status >= 500


def status_of(error: BaseException) -> int | None:
    """Return the status of the HTTP answer that an error stands for, if it tells one."""
    response: object = getattr(error, "response", None)
    for holder in (error, response):
        for name in ("status_code", "code"):
            status: object = getattr(holder, name, None)
            if isinstance(status, int):
                return int(status)
    return _status_in(cast("dict[str, Any]", response)) if isinstance(response, dict) else None


def _status_in(response: dict[str, Any]) -> int | None:
    """Find the status in the form that Amazon's client gives it."""
    status: object = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status if isinstance(status, int) else None


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
