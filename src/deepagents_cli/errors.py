"""Turn whatever ends a command into one sentence and an exit code."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum
from io import TextIOWrapper
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


class OutputError(OSError):
    """Standard output cannot be written, as where the disk is full."""

    def __str__(self) -> str:
        why = "it is closed" if self.errno == errno.EBADF else self.strerror
        return f"standard output cannot be written: {why}"


class _Output(TextIOWrapper):
    """Standard output whose errors say that they are its, in place of the stream that it had."""

    def __init__(self, stream: TextIOWrapper) -> None:
        super().__init__(
            os.fdopen(stream.fileno(), "wb", 0 if stream.write_through else -1, closefd=False),
            stream.encoding,
            stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        # Without it the descriptor would be closed.
        self._stream = stream

    def write(self, text: str) -> int:
        with _naming_output():
            return super().write(text)

    def flush(self) -> None:
        with _naming_output():
            super().flush()


@contextmanager
def _naming_output() -> Generator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


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

    def __init__(self, *, debug: bool = False) -> None:
        self.code: int = Exit.DONE
        self.debug = debug

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
        # Flushed here, where a closed pipe can still be handled; at exit it would be a traceback.
        unwritten = _flush_output()
        if error is None or (isinstance(error, SystemExit) and not error.code):
            error = unwritten or error
        if error is not None and not isinstance(error, KeyboardInterrupt | Exception):
            return False
        if error is not None:
            self.code = self._report(error)
        if isinstance(unwritten, BrokenPipeError):
            self.code = Exit.PIPE
        return True

    def _format_clean_warning(self, *args: Any, **options: Any) -> str:
        return clean(self._format_warning(*args, **options))

    def _report(self, error: BaseException) -> int:
        if isinstance(error, BrokenPipeError):
            drop_output()
            return Exit.PIPE
        if self.debug:
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


def open_streams() -> None:
    """Give a process standard streams where it was started without, as by `<&-`.

    To print fails then with `OutputError`, as on a full disk: an answer that goes nowhere is a failure.
    """
    # Another file that is opened would get the number, and then what is printed.
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if not stream:
            os.dup2(os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR), number)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    if type(stream := sys.stdout) is TextIOWrapper:
        sys.stdout = _Output(stream)


def complain(sentence: str) -> None:
    """Write one sentence to standard error, under the name of the program."""
    sys.stderr.write(f"deepagents: {one_line(sentence)}\n")


def is_for_people(error: BaseException) -> bool:
    """Return whether the message of an error is a sentence for the person, and no fault of the program."""
    from deepagents.errors import HarnessError

    return isinstance(error, CommandError | HarnessError | OutputError)


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


def drop_output() -> None:
    """Let what is printed from now on go nowhere, and what could not be written too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush_output() -> OSError | None:
    """Write what was printed; return why that is not possible."""
    try:
        sys.stdout.flush()
    except OSError as error:
        drop_output()
        return error
    return None
