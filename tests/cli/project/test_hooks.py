"""Hooks run before and after tools and at the end of a turn; exit code 2 refuses, with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.messages import ToolMessage

from deepagents.testing import ScriptedModel, call
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command, Ended

EDIT = call("write_file", file_path="new.md", content="text")
TASK = call("task", description="Write it.", subagent_type="general-purpose")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings.toml"
    monkeypatch.setenv("DEEPAGENTS_SETTINGS", str(path))
    return path


def run(cli: Command, *answers: object, options: tuple[str, ...] = ()) -> tuple[Ended, ScriptedModel]:
    model = ScriptedModel(*answers)  # pyright: ignore[reportArgumentType]
    return cli.run("go", "--yes", "--json", *options, model=model), model


def test_a_hook_refuses_a_call_with_a_reason(cli: Command, directory: Path, settings: Path) -> None:
    settings.write_text(
        """hooks.before_tool = [{command = "echo no new files; exit 2", tools = ["write_file"]}]"""
    )

    ended, model = run(cli, EDIT, "Understood.")

    assert ended.code == 0
    assert not (directory / "new.md").exists()
    told = model.asked[1].messages[-1]
    assert "A hook of this project refused the call: no new files" in told.text
    assert isinstance(told, ToolMessage)
    assert told.status == "error"


def test_a_hook_is_told_what_it_is_about(cli: Command, directory: Path, settings: Path) -> None:
    settings.write_text("hooks.before_tool = ['cat > before']\nhooks.after_tool = ['cat > after']")

    run(cli, EDIT, "Done.")

    before, after = (json.loads((directory / name).read_text()) for name in ("before", "after"))
    assert before["event"] == "before_tool"
    assert (before["tool"], before["arguments"]["content"]) == ("write_file", "text")
    assert (after["status"], before["directory"]) == ("success", str(directory))
    assert "new.md" in after["result"]


def test_what_a_hook_says_after_a_call_reaches_the_model(cli: Command, settings: Path) -> None:
    settings.write_text("hooks.after_tool = ['echo Run the formatter.; exit 2']")

    _, model = run(cli, EDIT, "Done.")

    assert model.asked[1].messages[-1].text.endswith("A hook of this project says: Run the formatter.")


def test_a_hook_makes_the_agent_go_on_a_few_times_at_most(cli: Command, settings: Path) -> None:
    settings.write_text("hooks.end_of_turn = ['echo The tests fail.; exit 2']")

    ended, model = run(cli, "Done.", "Done now.", "Really.", "I give up.")

    assert ended.code == 0
    assert [asked.messages[-1].text for asked in model.asked] == ["go", *["The tests fail."] * 3]


@pytest.mark.parametrize(
    ("hook", "said"),
    [("echo oops; exit 3", "3: oops"), ("exit 3", "3"), ("echo oops; kill -9 $$", "137: oops")],
)
def test_a_hook_that_fails_otherwise_is_named_and_stops_nothing(
    cli: Command, directory: Path, settings: Path, hook: str, said: str
) -> None:
    settings.write_text(f"hooks.before_tool = [{json.dumps(hook)}]")

    ended, _ = run(cli, EDIT, "Done.")

    assert (directory / "new.md").exists()
    assert f"the hook {hook!r} ended with {said}\n" in ended.err


@pytest.mark.parametrize("options", [(), ("--shell",)])
def test_subagents_are_asked_about_too(
    cli: Command, directory: Path, settings: Path, options: tuple[str, ...]
) -> None:
    settings.write_text("hooks.before_tool = [{command = 'exit 2', tools = ['write_file']}]")

    run(cli, TASK, EDIT, "It was refused.", "Done.", options=options)

    assert not (directory / "new.md").exists()


@needs_sandbox
@pytest.mark.parametrize("mode", ["auto", "full"])
def test_a_hook_runs_what_the_agent_wrote_as_freely_as_a_command_that_nobody_is_asked_about(
    cli: Command, directory: Path, settings: Path, tmp_path: Path, mode: str
) -> None:
    (directory / ".env").write_text("KEY=1")
    settings.write_text("""hooks.end_of_turn = ['cd . && make -s check']""")
    rule = f"check:\n\ttouch ran; touch {tmp_path}/outside; cp .env seen; true\n"
    model = ScriptedModel(call("write_file", file_path="Makefile", content=rule), "Done.")

    ended = cli.run("go", "--shell", "--mode", mode, model=model)

    assert (directory / "ran").exists(), ended.err
    assert (tmp_path / "outside").exists() == (mode == "full")
    assert (directory / "seen").exists() == (mode == "full")


def test_huge_arguments_are_cut_for_a_hook(cli: Command, directory: Path, settings: Path) -> None:
    settings.write_text("hooks.before_tool = ['cat > before']")

    run(cli, call("write_file", file_path="new.md", content="x" * 500_000), "Done.")

    assert (
        "(490,000 more characters)" in json.loads((directory / "before").read_text())["arguments"]["content"]
    )


@needs_sandbox
@pytest.mark.parametrize("place", [".vscode", ".git/hooks"])
def test_a_link_that_comes_behind_the_decision_opens_nothing(
    cli: Command, directory: Path, settings: Path, place: str
) -> None:
    (directory / place).mkdir(parents=True)
    (directory / "d").mkdir()
    # A hook runs between the decision and the tool, as a command in the background may.
    settings.write_text(f"hooks.before_tool = ['rmdir d; ln -s {place} d']")
    model = ScriptedModel(call("write_file", file_path="d/x", content="x"), "It failed.")

    assert cli.run("go", "--auto", model=model).code == 0

    assert "permission denied for write" in model.asked[-1].messages[-1].text
    assert [*(directory / place).iterdir()] == []
