"""One tree of errors, with codes for programs."""

from __future__ import annotations

import pytest

from deepagents import errors
from deepagents.errors import ConfigError, DeepAgentsWarning, HarnessError, ScriptError, UnknownModel


def test_everything_raised_here_has_one_root() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]

    assert len(kinds) >= 8
    assert [each for each in kinds if not issubclass(each, HarnessError)] == [DeepAgentsWarning]


def test_an_impossible_wish_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no model"):
        raise UnknownModel("no model")
    assert issubclass(UnknownModel, ConfigError)


def test_a_script_left_over_fails_a_test() -> None:
    with pytest.raises(AssertionError):
        raise ScriptError("left over")
