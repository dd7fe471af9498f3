"""The doctor says what is found, what is missing and how to get it, and whether a task could run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deepagents_cli.project.checks import Check, describe, is_ready
from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def _only_one_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where nothing listens.
    monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", "http://127.0.0.1:9")


def test_a_key_makes_it_ready_and_is_not_shown(
    cli: Command, directory: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")

    ended = cli("doctor", "--dir", str(directory))

    assert ended.code == 0
    assert "secret" not in ended.out
    assert ended.out.endswith("A task can run here.\n")
    for found in ("Python", "git", "ripgrep", "langchain", "sandbox", "terminal", str(state)):
        assert found in ended.out


def test_without_a_model_it_is_not_ready_and_says_what_to_do(
    cli: Command, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEEPAGENTS_CACHE", str(tmp_path))

    ended = cli("doctor", "--json", "--dir", str(directory))

    report = json.loads(ended.out)
    assert (ended.code, report["ready"]) == (1, False)
    ways = {each["name"]: each["way_out"] for each in report["checks"]}
    assert ways["anthropic:claude-sonnet-4-6"] == "set ANTHROPIC_API_KEY"
    assert "set one of the keys above" in ways["models"]


def test_what_is_wrong_in_settings_is_listed_and_cleaned(cli: Command, directory: Path) -> None:
    path = directory / ".deepagents/settings.toml"
    path.parent.mkdir()
    path.write_text('"\\u001b[2J" = 1\neditor = "evil"')

    out = cli("doctor", "--dir", str(directory)).out

    assert "\x1b" not in out
    assert "is not a setting" in out
    assert "only your own settings may say this" in out


def test_a_state_directory_that_others_can_read_is_named(cli: Command, directory: Path, state: Path) -> None:
    state.mkdir(mode=0o755)

    assert f"chmod 700 {state}" in cli("doctor", "--dir", str(directory)).out


def test_what_is_needed_is_marked() -> None:
    checks = [Check("a", "found", "here"), Check("bb", "needed", "not\nhere", "get it")]

    assert not is_ready(checks)
    assert describe(checks).splitlines() == [
        "ok  a   here",
        "!!  bb  not here",
        "      get it",
        "No task can run here: see the lines with !!",
    ]
