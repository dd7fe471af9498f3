"""Whatever ends a command becomes a sentence and a code."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest

from deepagents.errors import ToolFailure, UnknownModel
from deepagents_cli.errors import CommandError, ErrorBoundary, Exit, choose_exit_code, describe_error


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


def test_a_reader_who_leaves_is_no_error() -> None:
    program = (
        "import sys\n"
        "from deepagents.testing import ScriptedModel\n"
        "from deepagents_cli.__main__ import main\n"
        "sys.exit(main(['run', 'talk', '--json'], model=ScriptedModel('word ' * 20_000)))"
    )
    command = f'{sys.executable} -c "$1" | head -n 1; echo ${{PIPESTATUS[0]}}'

    ended = subprocess.run(["bash", "-c", command, "bash", program], capture_output=True, text=True)

    assert ended.stdout.splitlines()[-1] == "141"
    assert ended.stderr == ""
