"""Whatever ends a command becomes a sentence and a code."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deepagents.errors import ToolFailure, UnknownModel
from deepagents_cli.errors import CommandError, ErrorBoundary, Exit, choose_exit_code, describe_error
from tests.cli.conftest import Command

TALK = (
    "import sys\n"
    "from deepagents.testing import ScriptedModel\n"
    "from deepagents_cli.__main__ import main\n"
    "sys.exit(main(['run', 'talk', *sys.argv[2:]], model=ScriptedModel('word ' * int(sys.argv[1]))))"
)


def talk(place: Path, streams: str, words: int, *options: str) -> tuple[int, str, str]:
    """Run a task whose answer has so many words."""
    return run_in_shell(place, streams, "-c", TALK, str(words), *options)


def run_in_shell(place: Path, streams: str, *arguments: str) -> tuple[int, str, str]:
    """Run Python with its streams as a shell sets them; return the code, and what was written."""
    command = ["bash", "-c", f'"$@" {streams}', "bash", sys.executable, *arguments]
    # So that what is printed waits for a flush, as it does for most people.
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    ended = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("error", "said", "code"),
    [
        (CommandError("no such thing"), "no such thing", 1),
        (CommandError("not so", Exit.USAGE), "not so", 2),
        (UnknownModel("there is no model"), "there is no model", 2),
        (ToolFailure("timeout", "too slow"), "too slow", 1),
        (ValueError("a\n  b"), "ValueError: a b", 1),
        (KeyError(), "KeyError", 1),
        (CommandError("\x1b[2Jgone"), "\\x1b[2Jgone", 1),
    ],
)
def test_an_error_is_one_sentence_and_a_code(error: Exception, said: str, code: int) -> None:
    assert describe_error(error) == said
    assert choose_exit_code(error) == code


def test_an_interrupt_ends_with_130_and_no_words_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with ErrorBoundary(debug=False) as boundary:
        raise KeyboardInterrupt

    assert boundary.code == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("interrupts", [signal.default_int_handler, signal.SIG_IGN])
def test_a_request_to_terminate_counts_as_an_interrupt(interrupts: Any) -> None:
    before, standing = signal.getsignal(signal.SIGTERM), signal.signal(signal.SIGINT, interrupts)

    try:
        with ErrorBoundary(debug=False) as boundary:
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGINT, standing)

    assert boundary.code == 130
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_exit_passes_through() -> None:
    with pytest.raises(SystemExit), ErrorBoundary(debug=False):
        sys.exit(7)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_who_leaves_is_no_error(tmp_path: Path, options: tuple[str, ...]) -> None:
    _, printed, said = talk(tmp_path, "| head -c 1; echo ${PIPESTATUS[0]}", 20_000, *options)

    assert printed.endswith("141\n")
    assert said == ""


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_streams_that_are_closed_are_no_error(tmp_path: Path, closed: str) -> None:
    assert talk(tmp_path, closed, 1, "-q") == (0, "word \n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "why"),
    [
        (">&-", "it is closed"),
        ("<&- >&-", "it is closed"),
        (">/dev/full", "No space left on device"),
    ],
)
@pytest.mark.parametrize("options", [("-q",), ("--json",), ()])
def test_an_answer_that_cannot_be_written_is_an_error(
    tmp_path: Path, place: str, options: tuple[str, ...], why: str
) -> None:
    said = f"deepagents: standard output cannot be written: {why}\n"
    assert talk(tmp_path, place, 1, *options) == (1, "", said)
    # More than is kept until a flush.
    assert talk(tmp_path, place, 20_000, *options) == (1, "", said)


@pytest.mark.slow
@pytest.mark.parametrize("place", [">&-", ">/dev/full"])
@pytest.mark.parametrize(
    ("python", "typed"),
    [
        ("-m", "mcp list"),
        ("-m", "--help"),
        ("-m", "completion bash"),
        ("-um", "run --help"),
        ("-um", "--version"),
    ],
)
def test_what_any_command_prints_and_cannot_write_is_an_error_too(
    tmp_path: Path, place: str, python: str, typed: str
) -> None:
    code, _, said = run_in_shell(tmp_path, place, python, "deepagents", *typed.split())

    why = "it is closed" if place == ">&-" else "No space left on device"
    assert (code, said) == (1, f"deepagents: standard output cannot be written: {why}\n")


@pytest.mark.slow
def test_a_reader_of_help_who_leaves_is_no_error(tmp_path: Path) -> None:
    shown = run_in_shell(tmp_path, "| true; echo ${PIPESTATUS[0]}", "-m", "deepagents", "--help")

    # Whether the reader leaves first is up to the system.
    assert shown in ((0, "141\n", ""), (0, "0\n", ""))


@pytest.mark.slow
@pytest.mark.parametrize("place", [">/dev/full", ">&-"])
def test_wrong_usage_stays_so_where_nothing_can_be_printed(tmp_path: Path, place: str) -> None:
    code, _, said = run_in_shell(tmp_path, place, "-m", "deepagents", "--nothing")

    assert (code, said.splitlines()[-1][:18]) == (2, "deepagents: error:")


def test_a_directory_that_was_removed_is_named(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "removed"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()

    ended = cli("sessions")

    assert ended.err == "deepagents: the current directory was removed; change to another one\n"


def test_a_disk_that_is_full_is_said_with_the_way_out() -> None:
    text = describe_error(sqlite3.OperationalError("database or disk is full"))

    assert text.startswith("sessions cannot be kept (database or disk is full); make room there")
