"""What names a model becomes a chat model, or a sentence that says what could be done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from langchain.chat_models import init_chat_model

from deepagents import ProviderProfile, register_provider_profile
from deepagents.errors import ConfigError, UnknownModel
from deepagents.models import ModelProvider, default_model, register_model_provider, resolve_model
from deepagents.testing import ScriptedModel
from tests import programs


def name_of(model: Any) -> str:
    return str(getattr(model, "model_name", None) or model.model)


def test_a_chat_model_stays_as_it_is() -> None:
    model = ScriptedModel()

    assert resolve_model(model) is model


def test_a_name_becomes_a_model_of_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")

    model = resolve_model("anthropic:claude-sonnet-4-6")

    assert type(model).__name__ == "ChatAnthropic"
    assert name_of(model) == "claude-sonnet-4-6"


def test_a_key_that_is_missing_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(UnknownModel) as refused:
        resolve_model("openai:gpt-5")

    text = str(refused.value)
    assert text.startswith("OPENAI_API_KEY is not set, and 'openai:gpt-5' needs it: set it; or name ")
    assert "admin" not in str(refused.value)


def test_settings_still_work_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")

    with pytest.warns(DeprecationWarning, match="dict of settings"):
        model = resolve_model({"model": "gpt-5", "model_provider": "openai"})

    assert name_of(model) == "gpt-5"


@pytest.mark.parametrize("name", ["", ":", ":gpt-5", "openai:", "nobody:none", "no-such-model"])
def test_an_unknown_name_says_so_and_what_to_choose(name: str) -> None:
    with pytest.raises(UnknownModel, match="PROVIDER:MODEL") as refused:
        resolve_model(name)

    assert repr(name) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "model_provider" not in str(refused.value), "a name has no such parameter"
    assert len(str(refused.value)) < 500, "not every provider that LangChain knows"
    assert isinstance(refused.value, ConfigError | ValueError)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": None},
        {"model": ""},
        {"model_provider": "openai"},
        {"model": "no-such-model"},
        {"model": "none", "model_provider": "nobody"},
        {"model": "openai:"},
    ],
)
def test_settings_that_name_no_model_say_so_too(settings: dict[str, Any]) -> None:
    with (
        pytest.warns(DeprecationWarning, match="dict of settings"),
        pytest.raises(UnknownModel, match="PROVIDER:MODEL") as refused,
    ):
        resolve_model({**settings, "api_key": "sesame"} if settings else settings)

    assert all(repr(value) in str(refused.value) for value in settings.values())
    assert "sesame" not in str(refused.value)


def test_models_of_this_machine_have_a_provider_profile_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    register_provider_profile("local", ProviderProfile(pre_init=seen.append))
    register_provider_profile(
        "local:owl", ProviderProfile({"seed": 7}, init_kwargs_factory=lambda: {"max_tokens": 9})
    )

    made: list[Any] = [resolve_model(name) for name in ("local", "local:", "local:owl")]

    assert seen == ["local", "local", "local:owl"]
    assert [model.seed for model in made] == [None, None, 7]
    assert (made[-1].model, made[-1].max_tokens) == ("owl", 9)


def test_settings_name_a_model_of_this_machine_too() -> None:
    with pytest.warns(DeprecationWarning, match="dict of settings"):
        model = resolve_model({"model": "other", "model_provider": "local", "max_tokens": 9})

    assert (type(model).__name__, name_of(model)) == ("ChatLocal", "other")
    assert getattr(model, "max_tokens", None) == 9


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    monkeypatch.setenv("DEEPAGENTS_MODEL", "openai:gpt-5-mini")

    assert name_of(default_model()) == "gpt-5-mini"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], "claude-sonnet-4-6"),
        (["OPENAI_API_KEY"], "gpt-5"),
        (["GROQ_API_KEY", "OPENAI_API_KEY"], "gpt-5"),
    ],
)
def test_without_a_name_a_key_decides(
    keys: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in keys:
        monkeypatch.setenv(key, "not-a-key")

    assert name_of(default_model()) == expected


def test_a_key_whose_package_is_not_installed_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "not-a-key")

    with pytest.raises(UnknownModel, match="no model to use"):
        default_model()


def test_with_nothing_to_take_each_way_out_is_named() -> None:
    with pytest.raises(UnknownModel) as refused:
        default_model()

    for way in ("DEEPAGENTS_MODEL", "ANTHROPIC_API_KEY", "local-server:MODEL", "deepagents models pull"):
        assert way in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [5, ScriptedModel("Hi.").bind(stop=["."]), init_chat_model()],
)
def test_what_is_no_model_is_refused_by_value(wrong: Any) -> None:
    with pytest.raises(
        UnknownModel, match=r"must be a chat model or 'provider:name', got .*configurable"
    ) as no:
        resolve_model(wrong)

    assert repr(wrong) in str(no.value)


def test_a_package_brings_a_provider_of_its_own() -> None:
    register_model_provider("parrot", ModelProvider(lambda name, **given: ScriptedModel(name, **given)))

    made = resolve_model("parrot:polly")

    assert made.invoke("Who is there?").text == "polly"


@pytest.mark.parametrize("name", ["", "a:b"])
def test_a_provider_has_a_name_that_can_be_told_from_a_model(name: str) -> None:
    with pytest.raises(ValueError, match="no ':'"):
        register_model_provider(name, ModelProvider(ScriptedModel))


def test_only_a_provider_is_registered() -> None:
    with pytest.raises(TypeError, match="ModelProvider"):
        register_model_provider("parrot", cast(Any, ScriptedModel))


@pytest.fixture
def crow_and_starling() -> Iterator[None]:
    """One provider that fails when it is asked, and one after it that has a model."""

    def fail() -> bool:
        raise RuntimeError("the package is broken")

    register_model_provider("crow", ModelProvider(ScriptedModel, fail))
    register_model_provider("starling", ModelProvider(lambda _: ScriptedModel("Here."), lambda: True))
    yield
    for name in ("crow", "starling"):
        register_model_provider(name, ModelProvider(ScriptedModel))


@pytest.mark.usefixtures("crow_and_starling")
def test_a_provider_that_fails_when_asked_is_skipped_with_its_name() -> None:
    with pytest.warns(UserWarning, match="'crow' is skipped.*the package is broken"):
        made = default_model()

    assert made.invoke("Who is there?").text == "Here."


def test_a_local_model_without_its_engine_is_refused_before_a_task_begins() -> None:
    program = (
        "import sys, deepagents_local.llama, deepagents_local.chat\n"
        "from deepagents.models.resolve import model_providers, resolve_model\n"
        "model_providers()\n"
        "sys.path[:] = []\n"
        "resolve_model('local')\n"
    )
    ended = programs.run(program)

    assert "UnknownModel" in ended.stderr
    assert "pip install '.[local]'" in ended.stderr
