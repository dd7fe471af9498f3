"""What models over OpenRouter are made with."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.profiles.provider import apply_provider_profile
from tests.models.distributions import install

SPEC = "openrouter:anthropic/claude-sonnet-4.6"


def test_a_model_says_who_asks_and_passes_azure_by() -> None:
    assert apply_provider_profile(SPEC) == {
        "app_title": "Deep Agents",
        "openrouter_provider": {"ignore": ["azure"]},
    }


def test_what_a_caller_says_wins() -> None:
    mine = {"app_title": "Mine", "openrouter_provider": {"sort": "price"}}

    assert apply_provider_profile(SPEC, mine) == mine


@pytest.mark.parametrize("title", ["Mine", ""])
def test_a_title_of_the_environment_is_left_to_the_package(
    title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_APP_TITLE", title)

    assert "app_title" not in apply_provider_profile(SPEC)


@pytest.mark.parametrize(("said", "ignored"), [("1", False), (" Yes ", False), ("0", True), ("", True)])
def test_azure_can_be_allowed(said: str, ignored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPAGENTS_OPENROUTER_ALLOW_AZURE", said)

    assert ("openrouter_provider" in apply_provider_profile(SPEC)) == ignored


def test_a_package_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "langchain-openrouter", version="0.1.9")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ImportError, match=r"langchain-openrouter>=0\.2\.0, installed is 0\.1\.9"):
        apply_provider_profile(SPEC)
    assert apply_provider_profile(SPEC, run_pre_init=False)


def test_a_version_that_tells_nothing_is_warned_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "langchain-openrouter", version="main")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.warns(UserWarning, match="'main'") as warned:
        apply_provider_profile(SPEC)
    assert warned[0].filename == __file__
