"""Decide which failures of a model may be temporary, and what is tried then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from langchain_core.exceptions import ModelError
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from deepagents.errors import ConfigError, HarnessError

_PASSING: Final = frozenset({408, 409, 425, 429})
_FAULTS: Final = (
    *(HarnessError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(NotImplementedError, TypeError, ValidationError),
)
"""Mistakes in a program, which are there the next time as well."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is tried when a model fails: the same again, so many times, and then each of these models."""

    retries: int = 0
    fallbacks: tuple[BaseChatModel, ...] = ()

    @classmethod
    def of(
        cls, retries: int, fallbacks: Sequence[str | BaseChatModel], resolve: Callable[[Any], BaseChatModel]
    ) -> Self:
        """Check what a caller asked for, and make the models that were named.

        Raises:
            ConfigError: for numbers and lists that cannot be, and models that cannot be made.
        """
        if isinstance(retries, bool) or not isinstance(cast(object, retries), int) or retries < 0:
            raise ConfigError(f"model_retries must be a whole number of 0 or more, got {retries!r}")
        if isinstance(fallbacks, str | BaseChatModel) or not isinstance(cast(object, fallbacks), Iterable):
            raise ConfigError(
                f"fallback_models must be a list of models or names, got {fallbacks!r}; write [...] around a "
                "single one, and [] for none"
            )
        return cls(retries, tuple(resolve(each) for each in fallbacks))


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
