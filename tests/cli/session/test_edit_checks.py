"""Checks that a person has switched on run in the sandbox after edits; a project's wait for trust."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from deepagents.testing import Asked, ScriptedModel, call
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command

pytestmark = [needs_sandbox, pytest.mark.slow]
WORDS = "grep -nHr --include '*.txt' bad . | sed 's/:bad/: error: bad/'"
BAD, GOOD = (call("write_file", file_path="new.txt", content=f"{each}\n") for each in ("bad", "good"))


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings.toml"
    monkeypatch.setenv("DEEPAGENTS_SETTINGS", str(path))
    return path


def news(model: ScriptedModel) -> list[str]:
    """Return what the checks showed the model."""
    return [
        each.text
        for each in model.asked[-1].messages
        if each.additional_kwargs.get("lc_source") == "edit_checks"
    ]


@pytest.mark.parametrize("mode", [("--yes",), ("--yes", "--shell"), ("--auto",)])
def test_a_task_mends_what_its_last_edit_broke(
    cli: Command, directory: Path, settings: Path, mode: tuple[str, ...]
) -> None:
    (directory / "old.txt").write_text("bad\n")
    settings.write_text(f"[checks]\nwords = {json.dumps(WORDS)}")
    model = ScriptedModel(BAD, "Done.", GOOD, "Mended.")

    ended = cli.run("go", *mode, model=model)

    assert ended.code == 0
    assert "Mended." in ended.out.splitlines()
    assert [each.splitlines()[-1] for each in news(model)] == ["  ./new.txt:1: error: bad"]
    assert (directory / "new.txt").read_text() == "good\n"


def test_programs_of_the_project_are_found_and_format_what_is_written(
    cli: Command, directory: Path, settings: Path
) -> None:
    program = directory / "node_modules/.bin/tidy"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nsed -i s/bad/good/ "$@"\n')
    program.chmod(0o755)
    settings.write_text('[checks]\ntidy = {command = "tidy {files}", formats = true, files = ["*.txt"]}')
    model = ScriptedModel(BAD, lambda asked: asked.last)

    ended = cli.run("go", "--yes", model=model)

    assert "[tidy then formatted" in ended.out
    assert (directory / "new.txt").read_text() == "good\n"


def test_a_name_that_the_agent_chose_gives_a_formatter_no_rights(
    cli: Command, directory: Path, settings: Path
) -> None:
    (directory / ".env").write_text("KEY=canary\n")
    (directory / ".git").mkdir()
    (directory / ".git/config").write_text("[core]\n")
    spy = "cat .env > seen; echo planted >> .git/config; echo {files} > /dev/null"
    settings.write_text(f"[checks]\nspy = {{command = {json.dumps(spy)}, formats = true}}")
    model = ScriptedModel(call("write_file", file_path="a .git/config .env .txt", content="x\n"), "Done.")

    cli.run("go", "--yes", model=model)

    assert (directory / "seen").read_text() == ""
    assert (directory / ".git/config").read_text() == "[core]\n"


def test_a_check_that_is_broken_is_named_to_the_person(cli: Command, directory: Path, settings: Path) -> None:
    settings.write_text('[checks]\nabsent = "no-such-program"\nbroken = "exit 9"')
    ended = cli.run("go", "--yes", model=ScriptedModel(GOOD, "Done."))
    assert ended.code == 0
    assert "the check absent is off until the next message: " in ended.err
    assert "the check broken is off until the next message: it ended with exit code 9" in ended.err


def test_a_project_s_checks_run_when_they_are_trusted(cli: Command, directory: Path, settings: Path) -> None:
    (directory / ".deepagents").mkdir()
    text = '[checks]\nproof = {command = "touch ran", files = ["*.md", "*.txt"], seconds = "1m"}'
    (directory / ".deepagents/settings.toml").write_text(text)

    ended = cli.run("go", "--yes", model=ScriptedModel(GOOD, "Done."))
    assert not (directory / "ran").exists()
    assert "not used until you trust this directory: 1 check;" in ended.err

    shown = cli("trust", str(directory), "--yes").out
    assert "check proof: touch ran (for *.md, *.txt, at most 60 s)" in shown
    cli.run("go", "--yes", model=ScriptedModel(GOOD, "Done."))
    assert (directory / "ran").exists()


def test_news_between_the_messages_of_a_hook_do_not_make_it_go_on_forever(
    cli: Command, directory: Path, settings: Path
) -> None:
    hook = "hooks.end_of_turn = ['echo again; exit 2']"
    settings.write_text(f"{hook}\n[checks]\nwords = {json.dumps(WORDS)}")
    written = count(1)

    def work(asked: Asked) -> AIMessage:
        """Write something worse for each message, then answer."""
        if asked.messages[-1].type == "tool":
            return AIMessage("Done.")
        return call("write_file", file_path="new.txt", content="bad\n" * next(written))

    model = ScriptedModel(always=work)
    ended = cli.run("go", "--yes", "--max-model-calls", "40", model=model)

    assert ended.code == 0
    assert news(model)
    marks = [each.additional_kwargs.get("lc_source") for each in model.asked[-1].messages]
    assert marks.count("hook") == 3
