"""What the older module of models tells about them."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from deepagents import _models
from deepagents._models import (
    get_model_identifier,
    get_model_provider,
    model_matches_spec,
    resolve_model,
)
from deepagents.testing import ScriptedModel


def scripted(provider: str = "acme", model_name: str = "road-runner") -> ScriptedModel:
    return ScriptedModel(provider=provider, model_name=model_name)


def test_a_chat_model_stays_the_same_object() -> None:
    model = scripted()

    assert resolve_model(model) is model
    assert get_model_identifier(model) == "road-runner"
    assert get_model_provider(model) == "acme"


class Silent(FakeListChatModel):
    """Tells no provider, in one way or another."""

    says: Any = None

    def _get_ls_params(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@pytest.mark.parametrize(
    "says", [None, "acme", NotImplementedError("not here"), TypeError(), AttributeError()]
)
def test_a_provider_that_is_not_told_is_none_and_logged(says: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert get_model_provider(Silent(responses=[], says=says)) is None

    assert f"{__name__}.Silent" in caplog.text
    assert str(says if isinstance(says, Exception) else repr(says)) in caplog.text


@pytest.mark.parametrize("says", [{}, {"ls_provider": ""}, {"ls_provider": 5}])
def test_a_provider_is_a_name(says: Any) -> None:
    assert get_model_provider(Silent(responses=[], says=says)) is None


@pytest.mark.parametrize(
    ("provider", "spec", "matches"),
    [
        ("acme", "road-runner", True),
        ("acme", "acme:road-runner", True),
        ("ACME", "acme:road-runner", True),
        ("acme", "other:road-runner", False),
        ("acme", "acme:coyote", False),
        ("acme", "acme", False),
        ("azure", "azure_openai:road-runner", True),
        ("azure", "azure-openai:road-runner", True),
        ("mistral", "mistralai:road-runner", True),
        ("", "anyone:road-runner", True),
    ],
)
def test_a_model_is_known_by_its_name(provider: str, spec: str, matches: bool) -> None:
    assert model_matches_spec(scripted(provider), spec) is matches


def test_the_name_of_a_model_may_hold_colons() -> None:
    model = scripted("ollama", "glm-5.2:cloud")

    assert model_matches_spec(model, "ollama:glm-5.2:cloud")
    assert model_matches_spec(model, "glm-5.2:cloud")
    assert not model_matches_spec(model, "ollama:glm-5.2")
    assert not model_matches_spec(FakeListChatModel(responses=[]), "acme:road-runner")


def test_all_that_is_promised_is_there() -> None:
    assert [name for name in _models.__all__ if not hasattr(_models, name)] == []
