"""Stand between a program and a server that it started, and end the server when the program is gone.

Run by `python -I -S`, with the process id of the program, and the command. Nothing tells a process that its
parent was killed: on Linux the kernel's signal comes when the parent's *thread* ends. So this one looks.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LOOK = 0.25
"""Seconds between two looks at the parent."""
GRACE = 2.0
"""Seconds between asking the server's processes to end, and killing them."""
_SUBREAPER = 36


def main(owner: int, command: list[str]) -> int:
    """Run the command until it ends, or the owner does; then end all that is left of it."""
    if sys.platform == "linux":
        # What a server leaves behind in the background becomes a child of this process, where it is found.
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    wake, notify = os.pipe()
    for end in (wake, notify):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(notify)
    signal.signal(signal.SIGCHLD, lambda _, __: None)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    if os.getppid() != owner:
        return 1
    try:
        server = subprocess.Popen(command, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    # The server alone has the pipes now, so that their ends are seen when it ends.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for each in (signal.SIGINT, signal.SIGHUP):
        # Only now: a server inherits what is ignored.
        signal.signal(each, signal.SIG_IGN)
    while not asked and os.getppid() == owner and not _has_ended(server):
        select.select([wake], [], [], LOOK)
        _drain(wake)
    end_all(server, wake)
    code: int | None = server.returncode
    return 1 if code is None else code


def end_all(server: "subprocess.Popen[bytes]", wake: int) -> None:
    """End the server's group and whatever else it started: asked first, killed later."""
    _signal_all(server, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while _is_any_left(server) and time.monotonic() < deadline:
        select.select([wake], [], [], 0.05)
        _drain(wake)
    while _is_any_left(server) and time.monotonic() < deadline + GRACE:
        _signal_all(server, signal.SIGKILL)
        select.select([wake], [], [], 0.05)
        _drain(wake)


def _drain(wake: int) -> None:
    with suppress(BlockingIOError):
        while os.read(wake, 4096):
            pass


def _has_ended(server: "subprocess.Popen[bytes]") -> bool:
    """Return whether the server has ended; of all that end below this process, none stays a zombie."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == server.pid:
                server.returncode = os.waitstatus_to_exitcode(found[1])
    return server.returncode is not None


def _is_any_left(server: "subprocess.Popen[bytes]") -> bool:
    _has_ended(server)
    try:
        os.killpg(server.pid, 0)
    except ProcessLookupError:
        return bool(_children())
    except PermissionError:
        pass
    return True


def _signal_all(server: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, number)
    for child in _children():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(child, number)


def _children() -> list[int]:
    """Return the processes below this one, where that can be seen; ended ones do not count."""
    if sys.platform != "linux":
        return []
    below: dict[int, list[int]] = {}
    for entry in filter(lambda each: each.name.isdecimal(), Path("/proc").iterdir()):
        with suppress(OSError):
            # The name of the command stands in brackets, and may hold any character.
            state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                below.setdefault(int(parent), []).append(int(entry.name))
    found, waiting = list[int](), [os.getpid()]
    while waiting:
        next_ones = below.get(waiting.pop(), [])
        found += next_ones
        waiting += next_ones
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
