"""Run commands in the background: each in a thread of its own, which keeps the newest of its output."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from contextlib import suppress
from math import inf
from select import select
from typing import Final, Self

from deepagents._values import field, recordclass, replace
from deepagents.backends.local_shell.commands import (
    TIMED_OUT,
    Start,
    describe_failure,
    find_problem,
    positive,
)
from deepagents.backends.local_shell.process import STDOUT, Control
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.backends.results import CommandStatus
from deepagents.errors import BackendError

_STOPPED: Final = 128 + signal.SIGTERM
_MOST_KEPT: Final = 1_000_000
_MOST_COMMANDS: Final = 64
_MOST_ENDED: Final = 256
_WRITE_SECONDS: Final = 10.0
_STOP_SECONDS: Final = 10.0


@recordclass
class _Running:
    """One command, and what it printed; all of it changes under `changed` alone."""

    control: Control
    input: int
    changed: threading.Condition = field(default_factory=threading.Condition)
    printed: str = ""
    forgotten: int = 0
    exit_code: int | None = None

    def add(self, text: str, stream: str = STDOUT) -> None:
        """Keep a piece of output; of a flood the newest part."""
        if not text:
            return
        with self.changed:
            self.printed += text
            # Not at each piece: forgetting copies all the rest.
            if len(self.printed) > 2 * _MOST_KEPT:
                self.forgotten += len(self.printed) - _MOST_KEPT
                self.printed = self.printed[-_MOST_KEPT:]

    def end(self, exit_code: int) -> None:
        """Note the end, and wake who waits for it."""
        with self.changed:
            self.exit_code = exit_code
            self.close_input()
            os.close(self.control.stdin)
            self.changed.notify_all()

    def close_input(self) -> None:
        """Let the command read the end of its input."""
        if self.input >= 0:
            os.close(self.input)
            self.input = -1


class Background:
    """The commands that one backend runs in the background."""

    def __init__(self, start: Start, most_bytes: int) -> None:
        self._start = start
        self._most = most_bytes
        self.prefix = "command"
        self._commands: dict[str, _Running] = {}
        self._lock = threading.Lock()
        self._started = 0

    def start(self, command: str, timeout: int | None, start: Start | None = None) -> str:
        """Start a command, by `start` if that is given, and return its id.

        Raises:
            BackendError: for no command, and when too many run.
            ValueError: when `timeout` is not positive.
        """
        seconds = inf if timeout is None else positive(timeout)
        if problem := find_problem(command):
            raise BackendError("invalid_argument", problem)
        with self._lock:
            self._forget()
            # The threads are daemons, and what they wait for would otherwise outlive this process.
            atexit.unregister(self.close)
            atexit.register(self.close)
            self._started += 1
            command_id = f"{self.prefix}-{self._started}"
            reading, writing = os.pipe()
            os.set_blocking(writing, False)
            running = _Running(Control(stdin=reading), writing)
            self._commands[command_id] = running
        # The kernel ends a sandbox with the thread that started it, so this one lives as long as the command.
        threading.Thread(
            target=self._run,
            args=(running, start or self._start, command, seconds),
            name=command_id,
            daemon=True,
        ).start()
        return command_id

    def _run(self, running: _Running, start: Start, command: str, seconds: float) -> None:
        exit_code = 1
        control = replace(running.control, on_output=running.add)
        try:
            ended = start(command, seconds, control)
            notes = [*ended.notes]
            if ended.excess:
                notes.append(f"Error: Command was ended: {ended.excess}.")
            elif ended.exit_code is None and not control.is_cancelled.is_set():
                notes.append(f"Error: Command timed out after {seconds:g} seconds and was ended.")
            if ended.exit_code is not None:
                exit_code = ended.exit_code
            else:
                exit_code = _STOPPED if control.is_cancelled.is_set() and not ended.excess else TIMED_OUT
            running.add("".join(f"\n{each}" for each in notes))
        # Whoever polls learns of it; nobody waits for this thread.
        except Exception as error:  # noqa: BLE001
            running.add(describe_failure(error))
        finally:
            running.end(exit_code)

    def poll(self, command_id: str, offset: int, wait: float) -> CommandStatus:
        """Return what a command printed from an offset on, after its end or so many seconds."""
        running = self._find(command_id)
        with running.changed:
            running.changed.wait_for(lambda: running.exit_code is not None, wait)
            output = running.printed[max(offset - running.forgotten, 0) :]
            # The newest part, as of what a command keeps.
            output = output[-self._most :].encode(errors="replace")[-self._most :].decode(errors="ignore")
            end = running.forgotten + len(running.printed)
            missing = max(end - offset, 0) - len(output)
            refused = tuple(running.control.refused)
            return CommandStatus(output, end, running.exit_code, missing, refused)

    def write(self, command_id: str, text: str, close: bool) -> None:
        """Write to the input of a command.

        Raises:
            BackendError: `invalid_argument` when it is closed, `timeout` when nothing reads it.
        """
        running = self._find(command_id)
        try:
            left = text.encode()
        except UnicodeEncodeError as error:
            raise BackendError(
                "invalid_argument", "The text holds half characters, which no command can read."
            ) from error
        deadline = time.monotonic() + _WRITE_SECONDS
        while left:
            with running.changed:
                if running.input < 0:
                    raise BackendError("invalid_argument", f"The input of {command_id!r} is closed.")
                with suppress(BlockingIOError):
                    left = left[os.write(running.input, left) :]
                    continue
            if time.monotonic() > deadline:
                raise BackendError(
                    "timeout", f"{command_id!r} does not read its input: {len(left)} bytes are left."
                )
            select((), (), (), 0.01)
        if close:
            with running.changed:
                running.close_input()

    def stop(self, command_id: str) -> None:
        """End a command with all that it started, and wait for that."""
        running = self._find(command_id)
        running.control.is_cancelled.set()
        with running.changed:
            if not running.changed.wait_for(lambda: running.exit_code is not None, _STOP_SECONDS):
                raise BackendError("timeout", f"{command_id!r} has not ended within {_STOP_SECONDS:g} s.")

    def close(self) -> None:
        """End all commands, at the same time."""
        with self._lock:
            running = list(self._commands.items())
            atexit.unregister(self.close)
        for _, each in running:
            each.control.is_cancelled.set()
        for command_id, _ in running:
            with suppress(BackendError):
                self.stop(command_id)

    def _find(self, command_id: str) -> _Running:
        found = self._commands.get(command_id)
        if found is None:
            raise BackendError(
                "invalid_argument",
                f"there is no command {command_id!r} here; execute with background=true returns an id",
            )
        return found

    def _forget(self) -> None:
        ended = [key for key, each in self._commands.items() if each.exit_code is not None]
        for key in ended[:-_MOST_ENDED]:
            del self._commands[key]
        if len(self._commands) - len(ended) >= _MOST_COMMANDS:
            raise BackendError(
                "limit_reached", f"{_MOST_COMMANDS} commands run in the background; stop one of them first"
            )


class BackgroundCommands(SandboxBackendProtocol):
    """Methods of a backend whose commands can run in the background on this machine.

    As a context manager, a backend keeps its commands running until it is left; an agent otherwise ends those
    that it started when its run ends.
    """

    _background: Background
    _is_kept = False

    def name_commands(self, prefix: str) -> None:
        """Begin the ids of commands with this from now on.

        A process that takes up threads of another needs a prefix of its own. Else it finds its own command
        under the id of an earlier one.
        """
        self._background.prefix = prefix

    def start_command(self, command: str, *, timeout: int | None = None) -> str:
        """Start a command in the background, for at most `timeout` seconds, and return its id."""
        return self._background.start(command, timeout)

    def poll_command(self, command_id: str, *, offset: int = 0, wait: float = 0) -> CommandStatus:
        """Return what a command printed from an offset on, once it has ended or `wait` seconds are over."""
        return self._background.poll(command_id, offset, wait)

    def write_command(self, command_id: str, text: str, *, close: bool = False) -> None:
        """Write to the standard input of a command, and `close` it if nothing more comes."""
        self._background.write(command_id, text, close)

    def stop_command(self, command_id: str) -> None:
        """End a command with all that it started."""
        self._background.stop(command_id)

    def close(self) -> None:
        """End all commands that run in the background."""
        self._background.close()

    def __enter__(self) -> Self:
        self._is_kept = True
        return self

    def __exit__(self, *raised: object) -> None:
        self._is_kept = False
        self.close()
