"""Run inside a sandbox as long as a session lasts: start each command as a process of its own.

The first argument is the descriptor of a socket. Each message on it brings a socket for one command, its
three streams, and a file with its text. Signals come on the socket of the command, and its exit code goes
there.
"""

import os
import selectors
import signal
import socket
import struct
import sys
import tempfile
from contextlib import suppress
from functools import partial
from subprocess import Popen

# At its end a command leaves its directory and what it exported to the next one.
SCRIPT = """trap '{ pwd -P; export -p; } > "$0"' EXIT
eval "$1"; _command=$2; set --; eval "$_command" """
EXIT_CODE = struct.Struct("=i")
CANNOT_START = 126
# Linux gives a program no argument of more than 131,071 bytes.
MOST_EXPORTED = 130_000


class Session:
    """The commands of a session, and what each of them leaves to the next."""

    def __init__(self, harness: socket.socket) -> None:
        self.harness = harness
        self.directory, self.exported = os.getcwd(), ""
        self.selector = selectors.DefaultSelector()
        self.selector.register(harness, selectors.EVENT_READ, self.start)

    def run(self) -> None:
        """Serve until the harness closes the socket."""
        while True:
            for key, _ in self.selector.select():
                key.data()

    def start(self) -> None:
        """Start the command that a message is about."""
        message, files, _, _ = socket.recv_fds(self.harness, 1, 5)
        if not message:
            sys.exit()
        control, text = socket.socket(fileno=files[0]), os.pread(files[4], os.fstat(files[4]).st_size, 0)
        if not os.path.isdir(self.directory):
            self.directory = "/"
        try:
            saved, path = tempfile.mkstemp()
            os.close(saved)
            process = Popen(
                ["/bin/sh", "-c", SCRIPT, path, self.exported, text], cwd=self.directory,
                start_new_session=True, stdin=files[1], stdout=files[2], stderr=files[3],
            )  # fmt: skip
        except OSError as error:
            # A long command, a full /tmp or too many processes must not end the others.
            os.write(files[3], f"the command cannot be started: {error.strerror}\n".encode())
            control.send(EXIT_CODE.pack(CANNOT_START))
            control.close()
            return
        finally:
            for each in files[1:]:
                os.close(each)
        watched = os.pidfd_open(process.pid)
        self.selector.register(control, selectors.EVENT_READ, partial(self.signal, process, control))
        self.selector.register(
            watched, selectors.EVENT_READ, lambda: self.end(process, control, watched, path)
        )

    def signal(self, process: Popen[bytes], control: socket.socket) -> None:
        """Pass a signal on to a command and all that it started; one without a listener is killed."""
        number = control.recv(1)
        if not number:
            self.selector.unregister(control)
        # What left the group of the command is found while its parents live, so it comes first.
        for each in descendants(process.pid):
            with suppress(OSError):
                os.kill(each, number[0] if number else signal.SIGKILL)
        with suppress(OSError):
            os.killpg(process.pid, number[0] if number else signal.SIGKILL)

    def end(self, process: Popen[bytes], control: socket.socket, watched: int, path: str) -> None:
        """Keep what a command that has ended left, and report its exit code."""
        self.selector.unregister(watched)
        with suppress(KeyError):
            self.selector.unregister(control)
        os.close(watched)
        code = process.wait()
        with suppress(OSError):
            directory, _, exported = read(path).partition("\n")
            if exported:
                self.directory = directory
            # More than this cannot be handed on, and a part would be no valid text for the shell.
            if 0 < len(os.fsencode(exported)) < MOST_EXPORTED:
                self.exported = exported
        with suppress(OSError):
            os.unlink(path)
        with suppress(OSError):
            control.send(EXIT_CODE.pack(code))
        control.close()


def read(path: str) -> str:
    """Read a file that a command may have made anything else of."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        return os.fsdecode(os.read(file, 2 * MOST_EXPORTED))
    finally:
        os.close(file)


def descendants(pid: int) -> list[int]:
    """Return all processes below one."""
    parents: dict[int, int] = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError, ValueError), open(f"/proc/{each}/stat") as file:
            parents[int(each)] = int(file.read().rpartition(")")[2].split()[1])
    found = [pid]
    for above in found:
        found += [each for each, parent in parents.items() if parent == above]
    return found[1:]


if __name__ == "__main__":
    Session(socket.socket(fileno=int(sys.argv[1]))).run()
