"""The outermost layer: whatever ends a command becomes one sentence and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from types import FrameType, TracebackType

from deepagents_cli.exits import CommandError, Exit


class Rim:
    """A block that ends as a sentence and a code; a traceback only if asked. SIGTERM is Ctrl-C."""

    def __init__(self, *, debug: bool) -> None:
        self.code: int = Exit.DONE
        self._debug = debug

    def __enter__(self) -> Rim:
        self._before = signal.signal(signal.SIGTERM, _as_interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        signal.signal(signal.SIGTERM, self._before)
        if error is not None and not isinstance(error, KeyboardInterrupt | Exception):
            return False
        try:
            if error is not None:
                self.code = self._settle(error)
            sys.stdout.flush()
        except BrokenPipeError:
            self.code = _drop_output()
        return True

    def _settle(self, error: BaseException) -> int:
        if isinstance(error, BrokenPipeError):
            return _drop_output()
        if self._debug:
            traceback.print_exception(error)
        if isinstance(error, KeyboardInterrupt):
            return Exit.STOPPED
        sys.stderr.write(f"deepagents: {sentence(error)}\n")
        return code_of(error)


def sentence(error: BaseException) -> str:
    """Say in one line what went wrong."""
    from deepagents.errors import HarnessError
    from deepagents_cli.terminal import one_line

    said = one_line(str(error))
    if said and isinstance(error, CommandError | HarnessError):
        return said
    return f"{type(error).__name__}: {said}".rstrip(": ")


def code_of(error: BaseException) -> int:
    """Choose the exit code: what the error says, 2 when there is no model to use, else 1."""
    from deepagents.errors import UnknownModel

    if isinstance(error, CommandError):
        return error.code
    return Exit.USAGE if isinstance(error, UnknownModel) else Exit.FAILED


def leave_at_the_next_interrupt() -> None:
    """Let a second Ctrl-C end the process without waiting for work that does not heed the first."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell starts what it puts in the background
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _drop_output() -> int:
    """Keep the interpreter from complaining about a closed pipe when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.PIPE
