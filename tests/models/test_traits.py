"""What a chat model says about itself."""

from __future__ import annotations

from langchain_core.language_models import FakeListChatModel

from deepagents.models.traits import (
    input_window,
    model_identifier,
    model_provider,
)
from deepagents.testing import ScriptedModel


def test_a_model_tells_its_provider_and_its_name() -> None:
    model = ScriptedModel(provider="acme", model_name="road-runner")

    assert model_provider(model) == "acme"
    assert model_identifier(model) == "road-runner"


def test_a_model_that_tells_no_name_has_none() -> None:
    assert model_identifier(FakeListChatModel(responses=[])) is None


def test_a_window_is_known_where_the_profile_tells_it() -> None:
    assert input_window(ScriptedModel(profile={"max_input_tokens": 9})) == 9
    assert input_window(ScriptedModel(profile={"max_input_tokens": 0})) is None
    assert input_window(ScriptedModel(profile={"max_output_tokens": 9})) is None
    assert input_window(ScriptedModel()) is None
