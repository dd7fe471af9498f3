"""Turn whatever ends a command into one sentence and an exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
import warnings
from enum import IntEnum
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from deepagents_cli.text import clean, one_line


class Exit(IntEnum):
    """Exit codes."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    LIMITED = 4
    STOPPED = 130
    # 128 and the number of SIGPIPE, as a shell reports a program that it ended.
    PIPE = 141


class CommandError(Exception):
    """A command cannot go on; the message is one sentence for the person who typed it."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code


def missing_package(error: ModuleNotFoundError, extra: str) -> CommandError:
    """Return the error that says which package a command needs, and how to get it."""
    package = str(error.name).partition(".")[0]
    return CommandError(
        f"This command needs more packages ({package} is missing): "
        f"pip install '.[{extra}]' in a checkout of deepagents"
    )


class ErrorBoundary:
    """End a block as a sentence and a code, with a traceback only if asked; SIGTERM counts as Ctrl-C.

    Warnings and log lines that reach the terminal meanwhile are cleaned like all other text.
    """

    def __init__(self, *, debug: bool) -> None:
        self.code: int = Exit.DONE
        self._debug = debug

    def __enter__(self) -> ErrorBoundary:
        self._sigterm = signal.signal(signal.SIGTERM, _raise_interrupt)
        self._format_warning = warnings.formatwarning
        # A warning may quote what a model or a file holds.
        warnings.formatwarning = self._format_clean_warning
        if logging.lastResort:
            logging.lastResort.setFormatter(_CleanFormatter())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        signal.signal(signal.SIGTERM, self._sigterm)
        warnings.formatwarning = self._format_warning
        if logging.lastResort:
            logging.lastResort.setFormatter(None)
        if error is not None and not isinstance(error, KeyboardInterrupt | Exception):
            return False
        try:
            if error is not None:
                self.code = self._report(error)
            # Flushed here, where a closed pipe can still be handled; at exit it would be a traceback.
            sys.stdout.flush()
        except BrokenPipeError:
            self.code = _drop_output()
        except OSError as unwritten:
            _drop_output()
            self.code = self.code if error else self._report(unwritten)
        return True

    def _format_clean_warning(self, *args: Any, **options: Any) -> str:
        return clean(self._format_warning(*args, **options))

    def _report(self, error: BaseException) -> int:
        if isinstance(error, BrokenPipeError):
            return _drop_output()
        if self._debug:
            sys.stderr.write(clean("".join(traceback.format_exception(error))))
        if isinstance(error, KeyboardInterrupt):
            return Exit.STOPPED
        complain(describe_error(error))
        return choose_exit_code(error)


class _CleanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))


def check_process() -> None:
    """Check what every command needs of its process.

    Raises:
        CommandError: without a home, or where the current directory was removed.
    """
    try:
        Path.home()
        Path.cwd()
    except RuntimeError as error:
        raise CommandError("this user has no home directory; set HOME to one") from error
    except FileNotFoundError as error:
        raise CommandError("the current directory was removed; change to another one") from error


def open_closed_streams() -> None:
    """Give a process standard streams where it was started without, as by `<&-`.

    To print fails then, as on a full disk: an answer that goes nowhere is a failure.
    """
    # Another file that is opened would get the number, and then what is printed.
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if not stream:
            os.dup2(os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR), number)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def complain(sentence: str) -> None:
    """Write one sentence to standard error, under the name of the program."""
    sys.stderr.write(f"deepagents: {one_line(sentence)}\n")


def is_for_people(error: BaseException) -> bool:
    """Return whether the message of an error is a sentence for the person, and no fault of the program."""
    from deepagents.errors import HarnessError

    return isinstance(error, CommandError | HarnessError)


def describe_error(error: BaseException) -> str:
    """Describe in one line what went wrong."""
    text = one_line(str(error))
    if text and is_for_people(error):
        return text
    if type(error).__module__ == "sqlite3":
        return f"sessions cannot be kept ({text}); make room there, or name another place in DEEPAGENTS_STATE"
    named = f"{type(error).__name__}: {text}".rstrip(": ")
    if isinstance(error, ValueError) and _came_through(error, "langchain_core.language_models"):
        return (
            f"the model's server sent no answer that can be read ({named}); see that its address is right, "
            "and that nothing else answers in its place, such as a proxy"
        )
    return named


def _came_through(error: BaseException, package: str) -> bool:
    """Tell whether a package has called what raised an error."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__", "").startswith(package) for frame, _ in frames)


def explain_error(error: BaseException) -> str:
    """Describe in a sentence what went wrong."""
    text = describe_error(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"


def choose_exit_code(error: BaseException) -> int:
    """Choose the exit code: the error's own, 2 when there is no model to use, else 1."""
    from deepagents.errors import UnknownModel

    if isinstance(error, CommandError):
        return error.code
    return Exit.USAGE if isinstance(error, UnknownModel) else Exit.FAILED


def exit_at_next_interrupt() -> None:
    """Let a second Ctrl-C end the process without waiting for work that does not heed the first."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    # A shell starts background jobs with SIGINT ignored; raising the signal would then do nothing.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _drop_output() -> int:
    """Keep the interpreter from complaining about what cannot be written when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.PIPE
