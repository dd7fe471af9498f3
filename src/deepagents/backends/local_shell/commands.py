"""Run shell commands on this machine, blocking or awaited, and tell in words what came of them."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final, TypeAlias, cast

from deepagents._values import field, recordclass, valueclass
from deepagents.backends._bytes import reason_of
from deepagents.backends.local_shell.process import Control, Ended
from deepagents.backends.protocol import OnOutput
from deepagents.backends.results import ExecuteResponse
from deepagents.errors import ConfigError

DEFAULT_EXECUTE_TIMEOUT = 120
"""Seconds that a command may take by default."""

TIMED_OUT = 124
_FAILED = 1
_SIGNALLED = 128
_PIECES_EVERY: Final = 0.2
_MOST_IN_A_PIECE: Final = 8_000
# Programs that log to one stream and print to the other make many pieces, and none of those is a flood.
_MOST_PIECES: Final = 64

Start: TypeAlias = Callable[[str, float, Control], Ended]
"""Runs a command for so many seconds, or until it is cancelled."""


@valueclass
class Commands:
    """How one backend runs commands: their time, and how much of their output is kept.

    Raises:
        ValueError: when `timeout` is not positive.
    """

    start: Start
    timeout: int
    max_output_bytes: int

    def __post_init__(self) -> None:
        positive(self.timeout)

    def run(
        self,
        command: str,
        timeout: int | None,
        start: Start | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecuteResponse:
        """Run a command to its end.

        Raises:
            ValueError: when `timeout` is not positive.
        """
        return self._run(command, timeout, start or self.start, on_output, threading.Event())

    async def arun(
        self,
        command: str,
        timeout: int | None,
        start: Start | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecuteResponse:
        """Run a command to its end; cancelling this ends the command."""
        is_cancelled = threading.Event()
        # A thread of its own: the loop's pool has few, and long commands would keep other work waiting.
        thread = ThreadPoolExecutor(1, "execute")
        running = asyncio.get_running_loop().run_in_executor(
            thread, self._run, command, timeout, start or self.start, on_output, is_cancelled
        )
        thread.shutdown(wait=False)
        try:
            # Cancelled directly, the command would go on with nothing to stop it.
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            is_cancelled.set()
            await asyncio.wait([running])
            raise

    def _run(
        self,
        command: str,
        timeout: int | None,
        start: Start,
        on_output: OnOutput | None,
        is_cancelled: threading.Event,
    ) -> ExecuteResponse:
        seconds = self.timeout if timeout is None else positive(timeout)
        if problem := find_problem(command):
            return ExecuteResponse(problem, _FAILED)
        pieces = _Throttled(on_output) if on_output else None
        control = Control(is_cancelled, pieces)
        try:
            ended = start(command, seconds, control)
            if pieces:
                pieces.end()
        except OSError as error:
            return ExecuteResponse(describe_failure(error), _FAILED)
        exit_code = TIMED_OUT if ended.exit_code is None else ended.exit_code
        refused = (f"[{each}]" for each in control.refused)
        notes = [
            "\n".join(filter(None, [ended.output.rstrip("\n"), *refused, *ended.notes])) or "<no output>",
            *self._notes(ended, seconds, timeout is None),
        ]
        return ExecuteResponse("\n".join(notes), exit_code, ended.left_out > 0, tuple(control.refused))

    def _notes(self, ended: Ended, seconds: int, is_default: bool) -> list[str]:
        notes: list[str] = []
        if ended.left_out:
            notes.append(
                f"[Output truncated at {self.max_output_bytes} bytes: {ended.left_out} bytes between the "
                "beginning and the end were left out.]"
            )
        if ended.excess:
            notes.append(f"Error: Command was ended: {ended.excess}.")
        elif ended.exit_code is None:
            notes.append(_describe_timeout(seconds, is_default))
        elif ended.exit_code:
            notes.append(f"Exit code: {ended.exit_code}{_in_words(ended.exit_code)}")
        return notes


def positive(timeout: int) -> int:
    """Return a number of seconds.

    Raises:
        ValueError: when it is not a number, or not positive.
    """
    if not isinstance(cast(object, timeout), int | float):
        raise ValueError(f"timeout must be a number of seconds, got {timeout!r}")
    if timeout <= 0:
        raise ValueError(f"timeout must be positive, got {timeout!r}")
    return timeout


def check_variables(env: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the variables for commands.

    Raises:
        ConfigError: for what no program can be given.
    """
    for name, value in (env or {}).items():
        valid = isinstance(cast("object", value), str) and name and "=" not in name
        if not valid or "\0" in name + value:
            raise ConfigError(f"env must map names to text without NUL characters, got {name!r}: {value!r}")
    return env or {}


def find_problem(command: object) -> str | None:
    """Return why this is not a command that a shell can be given."""
    if not isinstance(command, str) or not command.strip():
        return "Error: Command must be a non-empty string."
    if "\0" in command:
        return "Error: Command must not hold a NUL character."
    try:
        os.fsencode(command)
    except UnicodeEncodeError:
        return "Error: Command must be text that can be encoded."
    return None


def describe_failure(error: Exception) -> str:
    """Say why a command could not be run, of the system's failures without the path that they name."""
    reason = reason_of(error) if isinstance(error, OSError) else str(error)
    return f"Error executing command ({type(error).__name__}): {reason}"


def _describe_timeout(seconds: int, is_default: bool) -> str:
    if is_default:
        return (
            f"Error: Command timed out after {seconds} seconds and was ended. "
            "For a longer run use the timeout parameter."
        )
    return (
        f"Error: Command timed out after {seconds} seconds (custom timeout) and was ended. "
        "It may be stuck, or need more time."
    )


def _in_words(exit_code: int) -> str:
    """Return the signal behind an exit code: negative when the shell got it, over 128 when its child did."""
    number = -exit_code if exit_code < 0 else exit_code - _SIGNALLED
    if number not in set(signal.Signals):
        return ""
    name = signal.Signals(number).name
    return f" (killed by {name})" if exit_code < 0 else f" (128 + {number}: a process was killed by {name})"


@recordclass
class _Throttled:
    """Passes output on a few times a second, and of a flood the newest part.

    Nothing is passed on of a command that ends sooner: its result comes at once.
    """

    on_output: OnOutput
    _held: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _first: float = field(default_factory=lambda: monotonic() + _PIECES_EVERY)
    _next: float = 0.0

    def __call__(self, text: str, stream: str) -> None:
        if text and self._held and self._held[-1][1] == stream:
            text = self._held.pop()[0] + text
        if text:
            self._held.append((text[-_MOST_IN_A_PIECE:], stream))
            del self._held[:-_MOST_PIECES]
        if self._held and monotonic() >= max(self._first, self._next):
            self._pass_on()

    def end(self) -> None:
        """Pass on the last pieces, which came too soon after others."""
        if monotonic() >= self._first:
            self._pass_on()

    def _pass_on(self) -> None:
        held, self._held, self._next = self._held, [], monotonic() + _PIECES_EVERY
        for each in held:
            self.on_output(*each)
