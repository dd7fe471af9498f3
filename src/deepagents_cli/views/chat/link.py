"""Start the worker and exchange messages with it, without ever waiting for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from deepagents_cli.project.state import state_dir
from deepagents_cli.protocol import Message, read, write

_CHUNK: Final = 1 << 16
_TAIL_LINES: Final = 8
_PATIENCE: Final = 5.0
"""Seconds that the worker has to write what it holds when the conversation ends."""
_LOGS_KEPT: Final = 7 * 86_400
"""Seconds."""


class Link:
    """The worker's process; what it writes to standard error goes to a log."""

    def __init__(self, command: Sequence[str], log: Path, *shared: int) -> None:
        self._log = log
        # Each on its own: directories above the last one would be readable for everybody.
        for place in (log.parent.parent, log.parent):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(log.parent)
        with open(log, "wb", opener=_open_private) as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Ctrl-C in an editor, which runs on the same terminal, is not for the worker.
                start_new_session=True,
                pass_fds=shared,
            )
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

    def attach(
        self, loop: AbstractEventLoop, take: Callable[[Message], None], end: Callable[[], None]
    ) -> None:
        """Hand each message to `take` as it comes, and call `end` when the worker is gone."""
        self._loop = loop
        loop.add_reader(self._from, self._read, take, end)
        self._flush()

    def send(self, **message: Any) -> None:
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
            self._process.communicate(self._unsent + write({"do": "close"}), _PATIENCE)
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

    def _read(self, take: Callable[[Message], None], end: Callable[[], None]) -> None:
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
            if message := read(line):
                if message.get("is") == "idle":
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


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _remove_old(logs: Path) -> None:
    """Remove the logs of workers that failed long ago."""
    for log in logs.glob("worker-*.log"):
        with suppress(OSError):
            if time.time() - log.stat().st_mtime > _LOGS_KEPT:
                log.unlink()


def writable_in(opening: Mapping[str, Any]) -> list[Path]:
    """Return the directories that were named for the agent to change."""
    return [Path(each) for each in opening["options"].get("write") or ()]


def start_worker(command: Sequence[str], opening: Mapping[str, Any], *, raw: bool = False) -> Link:
    """Start a worker and have it open a thread.

    With `raw`, it is given the terminal, to put that back if this process is killed.
    """
    terminal = [os.dup(sys.stdin.fileno())] if raw else []
    link = Link(command, state_dir() / "logs" / f"worker-{os.getpid()}.log", *terminal)
    link.send(do="open", terminal=next(iter(terminal), None), **opening)
    for each in terminal:
        os.close(each)
    return link
