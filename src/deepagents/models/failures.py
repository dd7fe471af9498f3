"""Recognize failures of a model: those that may be temporary, and requests that are too long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isnan
from random import uniform
from typing import Any, Final, cast

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelConnectionError,
    ModelError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from pydantic import ValidationError

_PASSING: Final = frozenset({408, 409, 425, 429})
_FAULTS: Final = (
    *(AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(NotImplementedError, TypeError, ValidationError),
)
"""Mistakes in a program, which are there the next time as well."""
_NO_CREDIT: Final = "insufficient_quota"
"""The code by which OpenAI says that an account is used up, with the status of a rate limit."""
_LONGEST_BACKOFF: Final = 30.0
LONGEST_WAIT: Final = 300.0
"""Seconds: where a provider asks for more, a person is to decide."""
_RATE_LIMIT: Final = 429
_OVERLOADED: Final = frozenset({503, 529})
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
    "exceeded model token limit",
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
    "prompt 超长",
    "range of input length should be",
    "request entity too large",
    "request exceeds the maximum size",
    "request_too_large",
    "too many input tokens",
    "total number of tokens in the prompt cannot exceed",
    "tokens exceeds the max",
    "string_above_max_length",
    "model_max_prompt_tokens_exceeded",
)
"""In lower case: OpenAI, Anthropic, Google, Bedrock, Mistral, Cohere, Groq, xAI, Zhipu, Moonshot, Qwen,
LiteLLM, llama.cpp, LM Studio, Ollama, vLLM, TGI."""


def may_pass(error: Exception) -> bool:
    """Return whether the same request, made again, may well be answered."""
    # What this library and its programs raise tells of a mistake, never of an outage.
    own = type(error).__module__.startswith("deepagents")
    if own or getattr(error, "code", None) == _NO_CREDIT:
        return False
    if isinstance(error, ModelError):
        return error.is_retryable
    status = status_of(error)
    # A stream that began well may tell of a failure later.
    if status is None or status < 400:
        return not isinstance(error, _FAULTS)
    return status in _PASSING or status >= 500


def choose_wait(error: Exception | None, retry: int) -> float:
    """Return the seconds before the next try: what the provider asks for, else twice as long as before."""
    asked = None if error is None else _read_retry_after(error)
    if asked is not None and not isnan(asked):
        return max(asked, 0.0)
    # Not all who were refused at one time are to come back at one time.
    return min(2.0**retry, _LONGEST_BACKOFF) * uniform(0.75, 1.25)


def _read_retry_after(error: Exception) -> float | None:
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    given = cast("Mapping[str, str]", headers)
    try:
        if "retry-after-ms" in given:
            return float(given["retry-after-ms"]) / 1000
        return float(given["retry-after"]) if "retry-after" in given else None
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(given["retry-after"]) - datetime.now(UTC)).total_seconds()
    except (KeyError, TypeError, ValueError):
        return None


def describe_failure(error: Exception) -> str:
    """Say in a few words why a model is asked again."""
    status = status_of(error)
    if isinstance(error, ModelRateLimitError) or status == _RATE_LIMIT:
        return "the rate limit is reached"
    if status in _OVERLOADED:
        return "the model is overloaded"
    if isinstance(error, ModelTimeoutError | TimeoutError):
        return "the model did not answer in time"
    if isinstance(error, ModelConnectionError | ConnectionError):
        return "the model cannot be reached"
    if isinstance(error, ValueError):
        return "the model's answer cannot be read"
    return f"the model failed: {type(error).__name__}"


def status_of(error: BaseException) -> int | None:
    """Return the status of the HTTP answer that an error stands for, if it tells one."""
    response: object = getattr(error, "response", None)
    for holder in (error, response):
        for name in ("status_code", "code"):
            status: object = getattr(holder, name, None)
            if isinstance(status, int):
                return int(status)
    # The form that Amazon's client gives it.
    about = cast("dict[str, Any]", response) if isinstance(response, dict) else {}
    status = about.get("ResponseMetadata", {}).get("HTTPStatusCode")
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
    # A server that fails says so in a sentence if it means this; a bare code may be of anything.
    in_words = status is not None and status >= 500
    return any(marker in text for marker in MARKERS if not in_words or " " in marker)
