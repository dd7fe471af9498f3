"""One confined process that lives on between commands, and starts each of them in a few milliseconds."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import IO, Final, Protocol

from deepagents.backends.local_shell.process import Control, Ended, follow

_INSIDE: Final = Path(__file__).with_name("session_inside.py")
_EXIT_CODE: Final = struct.Struct("=i")
_SECONDS_TO_END: Final = 10.0


class Confine(Protocol):
    """Runs a program in the sandbox to its end, with some files open and some directories readable."""

    def __call__(
        self,
        program: Sequence[str],
        seconds: float,
        control: Control,
        open_files: Sequence[int] = (),
        needs: Sequence[Path] = (),
    ) -> Ended: ...


class Session:
    """Commands of one sandbox in one long-lived process, which is started anew when it has ended."""

    def __init__(self, confine: Confine, most_bytes: int) -> None:
        self._confine = confine
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._process: _Server | None = None

    def run(self, command: str, seconds: float, control: Control) -> Ended:
        """Run a command to its end; its time and its cancellation end it and what it started."""
        with self._lock:
            server = self._process
            if server is None or server.ended is not None:
                server = self._process = _Server(self._confine)
                atexit.register(self.close)
            process = server.start(command, control.stdin)
        # Whose request was refused is not known.
        with server.control.refused.share_with(control.refused):
            ended = follow(process, seconds, self._most_bytes, control)
        if process.is_lost:
            # A command can stop it, and then it would answer no later one either.
            server.close()
        if not process.is_lost or control.is_cancelled.is_set():
            return ended
        why = server.describe_end()
        return replace(
            ended, notes=(f"Error: The session has ended{why}. The next command starts a new one.",)
        )

    def close(self) -> None:
        """End the session with all that runs in it."""
        with self._lock:
            server, self._process = self._process, None
        atexit.unregister(self.close)
        if server:
            server.close()


class _Server:
    """The process in the sandbox, from this side."""

    def __init__(self, confine: Confine) -> None:
        self.ended: Ended | None = None
        self._outside, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control = Control()
        # The kernel ends a sandbox with the thread that started it, so this one lives as long as the session.
        self._thread = threading.Thread(
            target=self._live, args=(confine, inside), name="sandbox-session", daemon=True
        )
        self._thread.start()

    def _live(self, confine: Confine, inside: socket.socket) -> None:
        prefix = Path(sys.base_prefix).resolve()
        python = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
        program = [python, "-I", "-S", "-c", _INSIDE.read_text(), str(inside.fileno())]
        needs = [] if prefix.is_relative_to("/usr") else [prefix]
        ended = Ended("it could not be started", 0, 1)
        try:
            ended = confine(program, inf, self.control, [inside.fileno()], needs)
        finally:
            self.ended = ended
            # Commands that were not taken yet are dropped with these, and so end.
            inside.close()
            self._outside.close()

    def start(self, command: str, stdin: int) -> _Process:
        """Have a command started, and return it at once."""
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipes = [os.pipe(), os.pipe()]
        given = os.open(os.devnull, os.O_RDONLY) if stdin == subprocess.DEVNULL else os.dup(stdin)
        text = os.memfd_create("command")
        try:
            with os.fdopen(os.dup(text), "wb") as file:
                file.write(os.fsencode(command))
            # A session that has ended takes nothing, and the command ends at once.
            with suppress(OSError):
                sent = [theirs.fileno(), given, pipes[0][1], pipes[1][1], text]
                socket.send_fds(self._outside, [b"."], sent)
        finally:
            theirs.close()
            for each in (given, pipes[0][1], pipes[1][1], text):
                os.close(each)
        return _Process(os.fdopen(pipes[0][0], "rb", 0), os.fdopen(pipes[1][0], "rb", 0), control)

    def describe_end(self) -> str:
        """Say why the process has ended, as far as that is known."""
        self._thread.join(_SECONDS_TO_END)
        if self.ended is None:
            return ""
        reason = self.ended.excess or self.ended.output.strip()
        return f": {reason}" if reason else ""

    def close(self) -> None:
        """End the process."""
        self.control.is_cancelled.set()
        self._thread.join(_SECONDS_TO_END)


@dataclass(slots=True)
class _Process:
    """One command of a session."""

    stdout: IO[bytes]
    stderr: IO[bytes]
    control: socket.socket
    exit_code: int | None = None
    is_lost: bool = False
    pid: int = 0

    def has_ended(self) -> bool:
        if self.exit_code is None:
            with suppress(BlockingIOError):
                self._take(self.control.recv(_EXIT_CODE.size, socket.MSG_DONTWAIT))
        return self.exit_code is not None

    def signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            self.control.send(bytes([number]))

    def wait(self) -> int:
        self.control.settimeout(_SECONDS_TO_END)
        with self.control:
            if self.exit_code is None:
                try:
                    self._take(self.control.recv(_EXIT_CODE.size))
                except OSError:
                    self._take(b"")
        assert self.exit_code is not None
        return self.exit_code

    def _take(self, report: bytes) -> None:
        self.is_lost = not report
        self.exit_code = _EXIT_CODE.unpack(report)[0] if report else -signal.SIGKILL
