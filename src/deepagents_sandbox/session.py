"""Keep confined processes between commands, and start each of them in a few milliseconds."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import IO, Final, Protocol, TypeAlias

from deepagents._values import recordclass, replace
from deepagents.backends.local_shell.process import Control, Ended, follow
from deepagents.permissions import CommandAccess
from deepagents_sandbox.held import Held
from deepagents_sandbox.leftovers import hold_devices
from deepagents_sandbox.mounts import find_interpreter
from deepagents_sandbox.session_inside import REPORT, STALE

_INSIDE: Final = Path(__file__).with_name("session_inside.py")
_SECONDS_TO_ANSWER: Final = 3.0
_SECONDS_TO_END: Final = 10.0


class Life(Protocol):
    """What happens while a sandbox runs, and when all in it is dead."""

    def begin(
        self, write_to_guard: Callable[[str], None], describe_enforced: Callable[[], str | None], /
    ) -> None:
        """Take what sends lines to the guard, and what says which bound the kernel enforced."""
        ...

    def end(self) -> None:
        """Undo what no mount could keep commands from."""
        ...


Confine: TypeAlias = Callable[
    [Sequence[str], float, Control, Held, Life, Sequence[int], Sequence[Path]], Ended
]
"""Runs a program in the sandbox to its end, with some files open and some directories readable."""


class Session:
    """Commands of one sandbox in long-lived processes: one for each set of rights.

    A process is replaced when it has ended, or when it does not hold what must be held for the next command.
    """

    def __init__(
        self, confine: Confine, look: Callable[[CommandAccess | None], Held], most_bytes: int
    ) -> None:
        self._confine = confine
        self._look = look
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._servers: list[_Server] = []

    def run(
        self, command: str, seconds: float, control: Control, allowed: CommandAccess | None = None
    ) -> Ended:
        """Run a command to its end; its time and its cancellation end it and what it started."""
        while (ended := self._try(os.fsencode(command), seconds, control, allowed)) is None:
            pass
        return ended

    def _try(
        self, text: bytes, seconds: float, control: Control, allowed: CommandAccess | None
    ) -> Ended | None:
        """Run a command; `None` if it was not started, since its process holds too little by now."""
        with self._lock:
            server, held, news = self._choose(allowed)
            process = server.start(text, control.stdin, held)
        try:
            # Whose request was refused is not known.
            with hold_devices(), server.control.refused.share_with(control.refused):
                ended = follow(process, seconds, self._most_bytes, control)
        finally:
            self._leave(server, process, held)
        if process.is_stale:
            return None
        if process.is_lost and not control.is_cancelled.is_set():
            news.append(f"Error: The session has ended{server.reason}. The next command starts a new one.")
        elif server.excess:
            news.append(f"[{server.excess}]")
        return replace(ended, notes=(*held.notes, *news))

    def _choose(self, allowed: CommandAccess | None) -> tuple[_Server, Held, list[str]]:
        """Return a process that holds what must be held now, with a line if it is not the one before."""
        rights = _describe_rights(allowed)
        server = next((each for each in self._servers if each.rights == rights and each.is_current), None)
        undone = server.tidy() if server else []
        held = self._look(allowed)
        news: list[str] = []
        if server and (fault := server.find_fault(held)) is not None:
            news = [
                f"[The session was started anew, without what earlier commands exported or started{fault}.]"
            ]
            server.is_current = False
            self._close_unused()
            # Only now nothing can change it any more.
            held, server = self._look(allowed), None
        held.undone += undone
        if server is None:
            server = _Server(self._confine, held, rights)
            self._servers.append(server)
            atexit.register(self.close)
        return server, held, news

    def _leave(self, server: _Server, process: _Process, held: Held) -> None:
        with self._lock:
            server.leave(process, held)
            self._close_unused()

    def _close_unused(self) -> None:
        for each in [*self._servers]:
            if not each.is_current and not each.running:
                self._servers.remove(each)
                each.close()

    def close(self) -> None:
        """End all processes with all that runs in them."""
        atexit.unregister(self.close)
        with self._lock:
            for each in self._servers:
                each.close()
            self._servers.clear()


def _describe_rights(allowed: CommandAccess | None) -> object:
    """Return what two commands have in common that may share a process."""
    if allowed is None or not (allowed.rules or allowed.unprotected):
        return None
    approved = allowed.rules.has("interrupt") and allowed.approved
    return allowed.rules.given, approved, allowed.unprotected


class _Server:
    """A process in the sandbox, from this side."""

    def __init__(self, confine: Confine, held: Held, rights: object) -> None:
        self.rights = rights
        self.is_current = True
        self.running: list[Held] = []
        self._held = held
        self._ended: Ended | None = None
        self._is_stale = False
        # What those commands found that have left something running.
        self._left: list[Held] = []
        self._write_to_guard: Callable[[str], None] = lambda _: None
        self.excess: str | None = None
        self._describe_enforced: Callable[[], str | None] = lambda: None
        self._outside, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._outside.settimeout(_SECONDS_TO_ANSWER)
        self.control = Control()
        # The kernel ends a sandbox with the thread that started it, so this one lives as long as the session.
        self._thread = threading.Thread(
            target=self._live, args=(confine, inside), name="sandbox-session", daemon=True
        )
        self._thread.start()

    def _live(self, confine: Confine, inside: socket.socket) -> None:
        python, needs = find_interpreter()
        # In a file, for whatever is on a command line is found by the `ps` and the `pkill -f` of commands.
        source = os.memfd_create("session")
        program = [python, "-I", "-S", f"/proc/self/fd/{source}", str(inside.fileno()), str(source)]
        ended = Ended("", 0, 1)
        try:
            os.write(source, _INSIDE.read_bytes())
            ended = confine(program, inf, self.control, self._held, self, [source, inside.fileno()], needs)
        except OSError as error:
            ended = Ended(f"it could not be started: {error.strerror}", 0, 1)
        finally:
            self._ended = ended
            # Commands that were not taken yet are dropped with these, and so end.
            inside.close()
            os.close(source)

    def begin(
        self, write_to_guard: Callable[[str], None], describe_enforced: Callable[[], str | None]
    ) -> None:
        self._write_to_guard = write_to_guard
        self._describe_enforced = describe_enforced

    def end(self) -> None:
        while self._left:
            self._left.pop().end()

    def tidy(self) -> list[str]:
        """Undo what was made since the last command by what earlier ones left, and return that."""
        undone: list[str] = []
        for each in [*self._left]:
            each.restore()
            undone += each.undone
            each.undone.clear()
        return undone

    def find_fault(self, held: Held) -> str | None:
        """Return why this cannot run the next command."""
        if self._ended is not None:
            return self.reason
        if self.excess:
            return f": {self.excess}"
        if self._is_stale:
            return ": files that commands may not change were replaced"
        return None if held.mounts == self._held.mounts else ": other files must be kept from it than before"

    def start(self, text: bytes, stdin: int, held: Held) -> _Process:
        """Have a command started, and return it at once."""
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipes = [os.pipe(), os.pipe()]
        given = os.open(os.devnull, os.O_RDONLY) if stdin == subprocess.DEVNULL else os.dup(stdin)
        file = os.memfd_create("command")
        try:
            with os.fdopen(os.dup(file), "wb") as opened:
                opened.write(text)
            held.begin()
            self.running.append(held)
            self._write_to_guard("busy")
            # A session that has ended or stopped takes nothing, and the command ends at once.
            with suppress(OSError):
                sent = [theirs.fileno(), given, pipes[0][1], pipes[1][1], file]
                socket.send_fds(self._outside, [b"."], sent)
        finally:
            theirs.close()
            for each in (given, pipes[0][1], pipes[1][1], file):
                os.close(each)
        return _Process(os.fdopen(pipes[0][0], "rb", 0), os.fdopen(pipes[1][0], "rb", 0), control)

    def leave(self, process: _Process, held: Held) -> None:
        """Put right what a command did that has ended; one whose end is not known ends this too."""
        self.running.remove(held)
        self._is_stale |= process.is_stale
        self.excess = self.excess or self._describe_enforced()
        if process.is_lost:
            self.close()
        if process.has_left:
            self._left.append(held)
            held.restore()
        else:
            held.end()
        if not self.running and not self._left:
            self._write_to_guard("idle")

    @property
    def reason(self) -> str:
        """Why the process has ended, as far as that is known."""
        if self._ended is None:
            return ""
        reason = self.excess or self._ended.excess or self._ended.output.strip()
        return f": {reason}" if reason else ""

    def close(self) -> None:
        """End the process."""
        self.control.is_cancelled.set()
        self._thread.join(_SECONDS_TO_END)
        self._outside.close()
        # A command may have ended after the process did.
        self.end()


@recordclass
class _Process:
    """One command of a session."""

    stdout: IO[bytes]
    stderr: IO[bytes]
    control: socket.socket
    exit_code: int | None = None
    has_left: bool = False
    is_stale: bool = False
    is_lost: bool = False
    pid: int = 0

    def has_ended(self) -> bool:
        if self.exit_code is None:
            with suppress(BlockingIOError):
                self._take(socket.MSG_DONTWAIT)
        return self.exit_code is not None

    def signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            self.control.send(bytes([number]))

    def wait(self) -> int:
        self.control.settimeout(_SECONDS_TO_ANSWER)
        with self.control:
            if self.exit_code is None:
                self._take()
        assert self.exit_code is not None
        return self.exit_code

    def _take(self, flags: int = 0) -> None:
        try:
            report = self.control.recv(REPORT.size, flags)
        except BlockingIOError:
            raise
        except OSError:
            report = b""
        if len(report) == REPORT.size:
            self.exit_code, self.has_left = REPORT.unpack(report)
            return
        self.is_stale = report == STALE
        self.is_lost = not self.is_stale
        self.exit_code = -signal.SIGKILL
