"""What was typed becomes values, or a usage error."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents_cli.commands.args import parse


def test_a_task_alone_is_enough() -> None:
    arguments = parse(["run", "tidy up"])

    assert (arguments.task, arguments.dir, arguments.model) == ("tidy up", Path(), None)
    flags = [arguments.yes, arguments.json, arguments.resume, arguments.shell, arguments.debug]
    assert flags == [False] * 5


def test_every_option_is_read() -> None:
    arguments = parse(
        [
            "run",
            "go",
            "--dir",
            "x",
            "--model",
            "a:b",
            "--yes",
            "--json",
            "--continue",
            "--thread",
            "t",
            "--shell",
        ]
    )

    assert (arguments.dir, arguments.model, arguments.thread) == (Path("x"), "a:b", "t")
    assert [arguments.yes, arguments.json, arguments.resume, arguments.shell] == [True] * 4


@pytest.mark.parametrize(
    ("argv", "task"),
    [
        (["tidy up"], "tidy up"),
        (["tidy", "up", "--yes"], "tidy up"),
        (["--yes", "tidy", "up"], "tidy up"),
        (["run", "tidy", "up"], "tidy up"),
        (["model", "the", "data"], "model the data"),
        (["--model", "a:b"], None),
        (["run", "models"], "models"),
    ],
)
def test_what_is_no_command_is_a_task(argv: list[str], task: str | None) -> None:
    arguments = parse(argv)

    assert (arguments.command, arguments.task) == ("run", task)


def test_continue_needs_no_task() -> None:
    assert parse(["run", "--continue"]).task is None


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["models"], "VERB"),
        (["model"], "'model' is not a command; is it 'models'?"),
        (["hepl"], "'hepl' is not a command; is it 'help'?"),
        (["sesions", "list"], "is it 'sessions'? As a task: deepagents run 'sesions list'"),
        (
            ["key", "create", "ada", "--runs", "2"],
            "is it 'keys'? As a task: deepagents run 'key create ada 2'",
        ),
        (["complition", "bash"], "is it 'completion'?"),
        (["go", "--json", "-q"], "not allowed with"),
        (["go", "--modle", "x"], "unrecognized arguments: --modle x; is it --mode or --model?"),
        (["models", "list", "--nothing-like-it"], "unrecognized arguments: --nothing-like-it\n"),
    ],
)
def test_wrong_usage_ends_with_two_and_says_why(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)

    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_help_tells_the_exit_codes_and_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--help"])

    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "exit codes:" in said
    assert "DEEPAGENTS_MODEL" in said
