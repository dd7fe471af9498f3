"""Send messages to the process of a worker and take its own, without ever waiting for it."""

from __future__ import annotations

import os
import subprocess
from asyncio import AbstractEventLoop
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from deepagents_cli.protocol import Close, Idle, Open, ToScreen, ToWorker, read_for_screen, write
from deepagents_cli.views.chat.worker.process import WorkerProcess

_CHUNK: Final = 1 << 16
_TAIL_LINES: Final = 8
_PATIENCE: Final = 5.0
"""Seconds that the worker has to write what it holds when the conversation ends."""


class Link:
    """The messages to the process of a worker, which is to open a thread, and from it."""

    def __init__(self, process: WorkerProcess, opening: Open) -> None:
        self._process, self._log = process.popen, process.log
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._unsent = b""
        self._unread = b""
        self._known = 0
        """How much of the log tells of turns that have ended, and how each did was shown."""
        self._loop: AbstractEventLoop | None = None
        self.ended = False
        self.send(replace(opening, terminal=process.terminal))

    def attach(
        self, loop: AbstractEventLoop, take: Callable[[ToScreen], None], end: Callable[[], None]
    ) -> None:
        """Hand each message to `take` as it comes, and call `end` when the worker is gone."""
        self._loop = loop
        loop.add_reader(self._from, self._read, take, end)
        self._flush()

    def send(self, message: ToWorker) -> None:
        """Send a message as soon as the worker takes it; to a worker that is gone, nothing is sent."""
        self._unsent += write(message)
        self._flush()

    def close(self) -> None:
        """Let the worker finish, and remove its log when it did so in order."""
        os.set_blocking(self._to, True)
        if self._loop is not None:
            self._loop.remove_reader(self._from)
            self._loop.remove_writer(self._to)
        self._loop = None
        try:
            self._process.communicate(self._unsent + write(Close()), _PATIENCE)
        except (subprocess.TimeoutExpired, OSError):
            self._process.terminate()
            self._wait_or_kill()
        if not self._process.returncode:
            self._log.unlink(missing_ok=True)

    def describe_end(self) -> tuple[str, str]:
        """Say how the worker ended, and give the last lines of its log."""
        self._wait_or_kill()
        code = self._process.returncode
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        lines = self._log.read_bytes()[self._known :].decode("utf-8", "replace").splitlines()
        return f"The agent's process has ended {how}.", "\n".join(lines[-_TAIL_LINES:])

    def _wait_or_kill(self) -> None:
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self, take: Callable[[ToScreen], None], end: Callable[[], None]) -> None:
        try:
            piece = os.read(self._from, _CHUNK)
        except BlockingIOError:
            return
        if not piece and self._loop is not None:
            self._loop.remove_reader(self._from)
            self.ended = True
            end()
            return
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for line in lines:
            message = read_for_screen(line)
            if isinstance(message, Idle):
                self._known = self._log.stat().st_size
            take(message)

    def _flush(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._to, self._unsent) :]
        except BlockingIOError:
            if self._loop is not None:
                self._loop.add_writer(self._to, self._flush)
            return
        except OSError:
            # The reader sees the end too, and says so.
            self._unsent = b""
        if self._loop is not None:
            self._loop.remove_writer(self._to)
