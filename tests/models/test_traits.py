"""What a chat model says about itself."""

from __future__ import annotations

from langchain_core.language_models import FakeListChatModel

from deepagents.models.traits import (
    input_window,
    is_chat_model,
    may_take_any_file,
    model_identifier,
    model_provider,
    rejects_input,
)
from deepagents.testing import ScriptedModel


def test_a_model_tells_its_provider_and_its_name() -> None:
    model = ScriptedModel(provider="acme", model_name="road-runner")

    assert model_provider(model) == "acme"
    assert model_identifier(model) == "road-runner"


def test_a_model_that_tells_no_name_has_none() -> None:
    assert model_identifier(FakeListChatModel(responses=[])) is None


def test_only_what_a_profile_rejects_is_rejected() -> None:
    model = ScriptedModel(profile={"image_inputs": True, "image_tool_message": False, "audio_inputs": False})

    assert not rejects_input(model, "image")
    assert rejects_input(model, "image", in_tool_message=True)
    assert rejects_input(model, "audio")
    assert not rejects_input(model, "video", in_tool_message=True)
    assert not rejects_input(ScriptedModel(), "pdf")


def test_some_providers_may_take_any_file() -> None:
    assert may_take_any_file(ScriptedModel(provider="openai"))
    assert not may_take_any_file(ScriptedModel())


def test_a_window_is_known_where_the_profile_tells_it() -> None:
    assert input_window(ScriptedModel(profile={"max_input_tokens": 9})) == 9
    assert input_window(ScriptedModel(profile={"max_input_tokens": 0})) is None
    assert input_window(ScriptedModel(profile={"max_output_tokens": 9})) is None
    assert input_window(ScriptedModel()) is None


def test_a_model_with_options_bound_to_it_is_not_itself_one() -> None:
    assert is_chat_model(ScriptedModel())
    assert not is_chat_model(ScriptedModel().bind(temperature=0))
    assert not is_chat_model("scripted")
