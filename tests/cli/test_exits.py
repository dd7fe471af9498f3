"""Each way to end has its exit code and one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from deepagents.backends import LocalSandbox
from deepagents.testing import ScriptedModel, call
from tests.cli.conftest import Command, Ended
from tests.cli.openai_server import Reply, serving
from tests.cli.openai_server import call as call_tool


def test_done_is_zero(cli: Command) -> None:
    ended = cli.run("hello", model=ScriptedModel("Hello."))

    assert (ended.code, ended.err) == (0, "")
    assert "Hello." in ended.out


def test_without_a_model_the_sentence_says_how_to_get_one(cli: Command) -> None:
    ended = cli.run("hello")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    for way in ("DEEPAGENTS_MODEL", "ANTHROPIC_API_KEY", "local-server:", "deepagents models pull"):
        assert way in ended.err


def test_a_model_that_does_not_exist_is_named(cli: Command) -> None:
    ended = cli.run("hello", "--model", "nobody:nothing")

    assert ended.code == 2
    assert "'nobody:nothing'" in ended.err
    assert ended.err.count("\n") == 1


def test_the_local_model_without_weights_says_how_to_fetch_them(cli: Command) -> None:
    ended = cli.run("hello", "--model", "local:qwen2.5-coder-0.5b")

    assert (ended.code, ended.out) == (2, "")
    assert "deepagents models pull qwen2.5-coder-0.5b" in ended.err


def test_an_error_of_the_model_is_one_sentence(cli: Command) -> None:
    ended = cli.run("hello", model=ScriptedModel(ConnectionError("the line\nis dead")))

    assert ended.code == 1
    assert ended.err == "deepagents: ConnectionError: the line is dead\n"


def test_an_error_without_words_is_named(cli: Command) -> None:
    assert cli.run("hello", model=ScriptedModel(TimeoutError())).err == "deepagents: TimeoutError\n"


@pytest.mark.parametrize("sent", [b"<html>Please log in.</html>", b"data: {what\n\ndata: [DONE]\n\n"])
def test_what_no_model_sends_is_said_in_a_sentence(
    cli: Command, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Reply(stream=sent)) as server:
        monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", server.address)
        ended = cli.run("-q", "hello", "--model", "local-server:scripted")

    assert ended.code == 1
    assert ended.err.startswith("deepagents: the model's server sent no answer that can be read (")
    assert ended.err.count("\n") == 1


def test_an_answer_that_broke_off_is_no_success(cli: Command) -> None:
    def ended(*options: str) -> Ended:
        half = AIMessage("Half an answ", response_metadata={"finish_reason": "length"})
        return cli.run("hello", *options, model=ScriptedModel(half))

    quiet, printed, lines = ended("-q"), ended(), ended("--json")

    assert [each.code for each in (quiet, printed, lines)] == [1, 1, 1]
    assert quiet.out == "Half an answ\n"
    assert quiet.err.startswith(
        "deepagents: the answer was cut off at a limit of tokens. Go on with: deepagents"
    )
    assert "the answer was cut off" in printed.out
    assert lines.of_kind("answer_broken")[0]["kind"] == lines.of_kind("final_answer")[0]["broken"] == "length"


def test_a_task_whose_broken_call_was_made_again_is_done(cli: Command) -> None:
    arguments = {"file_path": "/notes.md", "content": "hal"}
    half = call("write_file", **arguments).model_copy(
        update={"response_metadata": {"finish_reason": "length"}}
    )

    ended = cli.run("hello", "--auto", model=ScriptedModel(half, *["I did not write it."] * 2))

    assert (ended.code, ended.err) == (0, "")
    assert (cli.directory / "notes.md").read_text() == "first line\nsecond line\n"


@pytest.mark.parametrize("patience", [None, "3"])
def test_a_task_outlasts_a_minute_of_overload(
    cli: Command, monkeypatch: pytest.MonkeyPatch, patience: str | None
) -> None:
    monkeypatch.delenv("DEEPAGENTS_MODEL_RETRIES")
    if patience:
        monkeypatch.setenv("DEEPAGENTS_MODEL_RETRIES", patience)
    busy = Reply("Overloaded.", status=529, headers={"retry-after": "0"})
    with serving(call_tool("ls", path="/"), *[busy] * 6, "Here I am.") as server:
        monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", server.address)
        ended = cli.run("hello", "--json", "--model", "local-server:scripted")

    waits = [(each["reason"], each["seconds"], each["retries"]) for each in ended.of_kind("model_retry")]
    assert waits == [("the model is overloaded", 0, int(patience or 8))] * int(patience or 6)
    assert (ended.code, len(server.requests)) == ((1, 5) if patience else (0, 8))
    assert len(ended.of_kind("tool_called")) == 1


def test_a_number_of_retries_that_is_none_is_named(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPAGENTS_MODEL_RETRIES", "many")
    ended = cli.run("hello", model=ScriptedModel("Hi."))

    assert "deepagents: DEEPAGENTS_MODEL_RETRIES must be a whole number of 0 or more, got 'many'" in ended.err


def test_debug_shows_where_it_happened(cli: Command) -> None:
    ended = cli.run("hello", "--debug", model=ScriptedModel(ConnectionError("gone")))

    assert ended.code == 1
    assert "Traceback" in ended.err
    assert ended.err.endswith("deepagents: ConnectionError: gone\n")


def test_a_missing_directory_is_named(cli: Command, tmp_path: Path) -> None:
    ended = cli("run", "hello", "--dir", str(tmp_path / "none"), model=ScriptedModel())

    assert ended.code == 1
    assert "none' is not a directory" in ended.err


def test_the_small_local_model_is_not_given_a_shell(cli: Command) -> None:
    ended = cli.run("hello", "--shell", model=ScriptedModel(provider="local"))

    assert ended.code == 2
    assert "--shell is not offered to the local model" in ended.err


@pytest.mark.parametrize("shell", [True, False])
def test_commands_are_offered_in_the_sandbox_or_with_shell(cli: Command, shell: bool) -> None:
    model = ScriptedModel("Hello.")

    cli.run("hello", *(["--shell"] if shell else []), model=model)

    assert ("execute" in model.asked[0].tool_names) is (shell or LocalSandbox.available() is None)


def test_the_small_local_model_is_watched_at_each_change(cli: Command) -> None:
    ended = cli.run("hello", "--yes", model=ScriptedModel(provider="local"))

    assert ended.code == 2
    assert "--yes is not offered to the local model" in ended.err
