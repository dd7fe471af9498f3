"""Decide which failures of a model may be temporary."""

from __future__ import annotations

from typing import Any, Final, cast

from langchain_core.exceptions import ModelError
from pydantic import ValidationError

from deepagents.errors import HarnessError

_PASSING: Final = frozenset({408, 409, 425, 429})
_FAULTS: Final = (
    *(HarnessError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(NotImplementedError, TypeError, ValidationError),
)
"""Mistakes in a program, which are there the next time as well."""


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
