"""A provider profile gives arguments to the models that are made from names."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from deepagents import ProviderProfile, register_harness_profile, register_provider_profile
from deepagents.errors import ProfileError
from deepagents.models.resolve import resolve_model
from deepagents.profiles.provider import apply_provider_profile, get_provider_profile
from deepagents.testing import ScriptedModel


def responses_of(model: Any) -> bool | None:
    return model.use_responses_api


@pytest.fixture
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")


@pytest.mark.usefixtures("_keys")
@pytest.mark.parametrize("name", ["openai:gpt-4o", "gpt-4o"])
def test_openai_is_spoken_to_by_responses_whether_or_not_it_is_named(name: str) -> None:
    assert responses_of(resolve_model(name)) is True


@pytest.mark.usefixtures("_keys")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"model": "gpt-4o"}, True),
        ({"model": "openai:gpt-4o"}, True),
        ({"model": "gpt-4o", "model_provider": "openai"}, True),
        ({"model": "openai:gpt-4o", "use_responses_api": False}, False),
    ],
)
def test_settings_that_name_a_provider_get_its_profile_under_their_own(
    settings: dict[str, Any], expected: bool
) -> None:
    with pytest.warns(DeprecationWarning, match="dict of settings"):
        assert responses_of(resolve_model(settings)) is expected


def test_a_model_without_a_profile_is_made_once_and_of_its_name_alone() -> None:
    made: list[Any] = []

    def make(*names: Any, **arguments: Any) -> ScriptedModel:
        made.append((names, arguments))
        return ScriptedModel(provider="nobody")

    resolve_model("road-runner", make)

    assert made == [(("road-runner",), {})]


def test_a_name_that_is_a_key_of_a_provider_is_no_provider() -> None:
    register_provider_profile("coyote", ProviderProfile(init_kwargs={"legs": 4}))
    made: list[Any] = []

    def make(name: Any, **arguments: Any) -> ScriptedModel:
        made.append(arguments)
        return ScriptedModel(provider="warner", model_name=name)

    resolve_model("coyote", make)
    resolve_model("coyote:wile", make)

    assert made == [{}, {"legs": 4}]


def test_nvidia_is_told_who_asks() -> None:
    first, second = (apply_provider_profile("nvidia:any") for _ in range(2))

    assert first == {"default_headers": {"X-BILLING-INVOKE-ORIGIN": "DeepAgents"}}
    assert first["default_headers"] is not second["default_headers"]


def test_a_factory_goes_over_arguments_and_a_caller_over_both() -> None:
    seen: list[str] = []
    register_provider_profile(
        "ash",
        ProviderProfile(
            init_kwargs={"a": 1, "b": 1, "c": 1},
            pre_init=seen.append,
            init_kwargs_factory=lambda: {"b": 2, "c": 2},
        ),
    )

    assert apply_provider_profile("ash:tree", {"c": 3}) == {"a": 1, "b": 2, "c": 3}
    assert seen == ["ash:tree"]


def test_the_profile_of_a_model_goes_over_that_of_its_provider() -> None:
    seen: list[str] = []
    register_provider_profile(
        "elm",
        ProviderProfile(
            {"a": 1, "b": 1}, lambda spec: seen.append(f"first {spec}"), lambda: {"b": 2, "d": 2}
        ),
    )
    register_provider_profile(
        "elm:old",
        ProviderProfile({"b": 3}, lambda spec: seen.append(f"then {spec}"), lambda: {"c": 3}),
    )

    assert apply_provider_profile("elm:old") == {"a": 1, "b": 3, "c": 3, "d": 2}
    assert seen == ["first elm:old", "then elm:old"]
    assert apply_provider_profile("elm:new") == {"a": 1, "b": 2, "d": 2}


def test_a_hook_that_raises_stops_the_making(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(spec: str) -> None:
        raise PermissionError(f"not {spec}")

    register_provider_profile("fir", ProviderProfile(pre_init=refuse))
    register_provider_profile("fir", ProviderProfile(pre_init=lambda _: pytest.fail("went on")))

    with caplog.at_level(logging.ERROR), pytest.raises(PermissionError, match="not fir:tree"):
        resolve_model("fir:tree")
    assert "Base pre_init for 'fir:tree' raised" in caplog.text


@pytest.mark.parametrize("name", ["azure_openai", "azure-openai", "azure"])
def test_a_provider_is_found_by_any_of_its_names(name: str) -> None:
    register_provider_profile("azure_openai", ProviderProfile(init_kwargs={"api_version": "v1"}))

    assert apply_provider_profile(f"{name}:deployed") == {"api_version": "v1"}


def test_a_provider_that_is_spelled_otherwise_has_what_is_built_in_too() -> None:
    register_provider_profile("OpenRouter:larch", ProviderProfile(init_kwargs={"a": 1}))
    register_provider_profile("open-router", ProviderProfile(init_kwargs={"b": 2}))
    register_provider_profile("OPEN_ROUTER", ProviderProfile(init_kwargs={"c": 3}))

    assert apply_provider_profile("openrouter:larch")["a"] == 1
    assert "app_title" in apply_provider_profile("openrouter:larch")
    assert apply_provider_profile("open_router:any") == {"b": 2, "c": 3}


@pytest.mark.parametrize("spec", ["", ":", "openai:", ":gpt-5", "nobody:none"])
def test_what_names_no_model_has_no_profile(spec: str) -> None:
    assert get_provider_profile(spec) is None


def test_only_profiles_are_registered() -> None:
    wrong: Any = {"timeout": 9}

    with pytest.raises(TypeError, match=r"ProviderProfile is registered for 'gum', got \{'timeout': 9\}"):
        register_provider_profile("gum", wrong)
    with pytest.raises(TypeError, match="HarnessProfile or HarnessProfileConfig is registered for 'gum'"):
        register_harness_profile("gum", wrong)


@pytest.mark.parametrize("name", ["init_kwargs", "pre_init", "init_kwargs_factory"])
def test_what_a_profile_cannot_hold_is_refused_by_name(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a (mapping|function or None), got 5"):
        ProviderProfile(**{name: cast(Any, 5)})


def test_a_factory_that_makes_no_arguments_is_named() -> None:
    def forgets() -> Any:
        return None

    for _ in range(2):
        register_provider_profile("ivy", ProviderProfile(init_kwargs_factory=forgets))
        with pytest.raises(ProfileError, match=r"init_kwargs_factory .*forgets.* must return .* got None"):
            resolve_model("ivy:green")


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("", "non-empty"),
        (" oak", "whitespace"),
        ("oak: tree", "whitespace"),
        (":tree", "empty provider"),
        ("oak:", "empty provider"),
        (None, "non-empty"),
        (5, "non-empty"),
    ],
)
def test_a_key_that_names_nothing_is_refused(key: Any, why: str) -> None:
    with pytest.raises(ProfileError, match=why) as refused:
        register_provider_profile(key, ProviderProfile())
    assert repr(key) in str(refused.value)


def test_only_the_first_colon_of_a_key_counts() -> None:
    register_provider_profile("ollama:glm-5.2:cloud", ProviderProfile(init_kwargs={"a": 1}))

    assert apply_provider_profile("ollama:glm-5.2:cloud") == {"a": 1}
    assert apply_provider_profile("ollama:glm-5.2") == {}


def test_a_profile_is_a_value() -> None:
    arguments = {"a": [1]}
    profile = ProviderProfile(init_kwargs=arguments)
    arguments["b"] = []

    assert profile == ProviderProfile(init_kwargs={"a": [1]})
    assert {profile: 1}[ProviderProfile(init_kwargs={"a": [1]})] == 1
