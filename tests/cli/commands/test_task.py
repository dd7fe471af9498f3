"""Standard input is the task or follows it, and the answer stands alone where that is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.conftest import Command

pytestmark = pytest.mark.slow

ECHO = ScriptedModel(always=lambda asked: asked.last)


def test_standard_input_is_the_task_where_none_was_typed(
    cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("Say good morning.\n"))

    assert cli.run("-q", model=ECHO).out == "Say good morning.\n"

    monkeypatch.setattr("sys.stdin", StringIO("Say good evening.\n"))
    monkeypatch.chdir(cli.directory)
    assert "\nSay good evening.\n" in cli(model=ECHO).out


def test_standard_input_follows_the_task(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("-old\n+new\n"))

    ended = cli.run("-q", "word", "this", "change", model=ECHO)

    assert ended.out == "word this change\n\n<stdin>\n-old\n+new\n</stdin>\n"


def test_without_task_and_input_the_way_out_is_said(cli: Command) -> None:
    for ended in (cli.run(model=ECHO), cli(model=ECHO)):
        assert ended.code == 2
        assert ended.err.startswith('deepagents: a task is needed: deepagents "TASK" (--continue')


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (TextIOWrapper(BytesIO(b"\xff\xfe\x00"), "utf-8"), "standard input holds no text"),
        # As Python reads it where no language is set.
        (TextIOWrapper(BytesIO(b"\xff"), "utf-8", "surrogateescape"), "standard input holds no text"),
        (StringIO("x" * 1_000_001), "put it into a file"),
    ],
)
def test_input_that_no_model_can_read_is_refused(
    cli: Command, monkeypatch: pytest.MonkeyPatch, given: TextIOWrapper | StringIO, said: str
) -> None:
    monkeypatch.setattr("sys.stdin", given)

    ended = cli.run("explain", model=ECHO)

    assert ended.code == 2
    assert said in ended.err


def test_a_task_of_broken_bytes_is_refused(cli: Command) -> None:
    ended = cli.run("explain \udcff", model=ECHO)

    assert (ended.code, "the task holds no text" in ended.err) == (2, True)


def test_quiet_writes_the_answer_and_nothing_else(cli: Command, directory: Path) -> None:
    model = ScriptedModel(call("write_file", file_path="a.md", content="a\n"), "*Done*\x1b[31m")

    ended = cli.run("-q", "--yes", "write a", model=model)

    assert (ended.code, ended.out) == (0, "*Done*\x1b[31m\n")
    assert (directory / "a.md").read_text() == "a\n"


def test_input_that_does_not_come_is_waited_for_and_said() -> None:
    # The end of a pipe that nobody writes to, as some programs leave it to what they start.
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "deepagents_cli", "-q", "--model", "nobody:nothing", "hello"]
    with subprocess.Popen(command, stdin=reading, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr
        first = started.stderr.readline()
        os.close(writing)
        os.close(reading)
        rest = started.stderr.read()

    assert first == (
        "deepagents: waiting for the end of standard input; where nothing comes, add < /dev/null\n"
    )
    assert "nobody" in rest, "it went on"
