"""What a chat model says about itself."""

from __future__ import annotations

from langchain_core.language_models import FakeListChatModel

from deepagents.models.traits import may_take_any_file, model_identifier, model_provider, rejects_input
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
