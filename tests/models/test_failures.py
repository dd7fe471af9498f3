"""Which failures of a model may pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError, ModelRateLimitError
from pydantic import TypeAdapter, ValidationError

from deepagents.errors import ScriptError
from deepagents.models.failures import choose_wait, may_pass, status_of


def answered(**said: Any) -> Exception:
    """Make the error of some provider's package."""
    error = Exception("no")
    vars(error).update(said)
    return error


def misfit() -> ValidationError:
    """Make what pydantic says of a value that does not fit its type."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(int).validate_python("x")
    return caught.value


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (OSError("connection lost"), True),
        (ValueError("not JSON"), True),
        (ModelRateLimitError("slower"), True),
        (ContextOverflowError("too long"), False),
        (ScriptError("the script has run out"), False),
        (KeyError("a mistake"), False),
        (misfit(), False),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "torn"), True),
        (answered(status_code=429), True),
        (answered(status_code=529), True),
        (answered(status_code=404), False),
        (answered(status_code=200), True),
        (answered(status_code=429, code="insufficient_quota"), False),
        (answered(response=SimpleNamespace(status_code=503)), True),
        (answered(response={"ResponseMetadata": {"HTTPStatusCode": 400}}), False),
    ],
)
def test_a_failure_may_pass_or_not(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes


def test_an_error_without_an_answer_has_no_status() -> None:
    assert status_of(OSError("connection lost")) is None
    assert status_of(answered(code="invalid_api_key", response={})) is None


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "0"}, 0, 0),
        ({"retry-after": "-1"}, 0, 0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25, 0.25),
        ({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}, 1e8, 1e10),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0, 0),
        ({"retry-after": "soon"}, 6, 10),
        ({"retry-after": "nan"}, 6, 10),
        ({}, 6, 10),
    ],
)
def test_the_wait_is_what_the_provider_asks_for_else_it_doubles(
    headers: dict[str, str], least: float, most: float
) -> None:
    response = SimpleNamespace(status_code=529, headers=headers)

    assert least <= choose_wait(answered(response=response), 3) <= most


def test_the_usual_waits_outlast_a_minute() -> None:
    assert sum(choose_wait(OSError(), retry) for retry in range(8)) > 60
