"""Which failures of a model may pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError, ModelRateLimitError
from pydantic import TypeAdapter, ValidationError

from deepagents.errors import ScriptError
from deepagents.models.failures import may_pass, status_of


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
        (answered(response=SimpleNamespace(status_code=503)), True),
        (answered(response={"ResponseMetadata": {"HTTPStatusCode": 400}}), False),
    ],
)
def test_a_failure_may_pass_or_not(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes


def test_an_error_without_an_answer_has_no_status() -> None:
    assert status_of(OSError("connection lost")) is None
    assert status_of(answered(code="invalid_api_key", response={})) is None
