"""The agent of a run: its model, and a backend that stays in its directory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from deepagents.testing import ScriptedModel, call
from deepagents_cli.session.agent.agents import choose_model, model_label
from tests.cli.conftest import Command


def test_a_model_is_named_by_provider_and_name() -> None:
    assert model_label(ScriptedModel(provider="some", model_name="thing")) == "some:thing"
    assert model_label(ScriptedModel(provider="", model_name="")) == "ScriptedModel"


@pytest.mark.parametrize(
    ("address", "label"),
    [
        ("http://127.0.0.1:11434/v1", "local-server:mine"),
        ("http://localhost/v1", "local-server:mine"),
        ("http://[::1]:1/v1", "local-server:mine"),
        ("https://models.example/v1", "openai:mine"),
        (None, "openai:mine"),
    ],
)
def test_a_server_on_this_machine_is_labelled_as_one(address: str | None, label: str) -> None:
    assert model_label(ChatOpenAI(model="mine", base_url=address, api_key=SecretStr("none"))) == label


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the bound loses no stop, and stays")
def test_no_bound_between_two_pieces_of_an_answer_can_lose_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    model = choose_model("openai:gpt-5.4")
    assert isinstance(model, ChatOpenAI)
    assert model.stream_chunk_timeout is None


@pytest.mark.parametrize("path", ["/../outside.txt", "/link/outside.txt"])
def test_no_path_leads_out_of_the_directory(cli: Command, directory: Path, path: str) -> None:
    (directory / "link").symlink_to(directory.parent)
    model = ScriptedModel(call("write_file", file_path=path, content="x"), "Tried.")

    cli.run("leave", "--yes", model=model)

    assert not (directory.parent / "outside.txt").exists()
    assert model.asked[-1].last.startswith("Error")


def test_commands_see_no_keys(cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    model = ScriptedModel(call("execute", command="env"), "Seen.")

    cli.run("look", "--shell", "--yes", model=model)

    assert "PATH=" in model.asked[-1].last
    assert "secret" not in model.asked[-1].last
