"""Run inside a sandbox as long as a session lasts: start each command below a process of its own.

The first argument is the descriptor of a socket. Each message on it brings a socket for one command, its
three streams, and a file with its text. Signals come on the socket of the command, and its exit code goes
there.
"""

# What is imported makes every fork slower: `subprocess` and `tempfile` would take a millisecond.
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys
from contextlib import suppress

# At its end a command leaves its directory and what it exported to the next one. The last line shows that all
# of it was written; a limit on the size of files must not end the shell here.
SCRIPT = """
trap "{ trap '' XFSZ; command cd -P .; export PWD; export -p && echo :; } >| '$1' 2>/dev/null" EXIT
if [ -s "$2" ]; then . "$2"; cd "$PWD" 2>/dev/null || cd -P .; fi
_command=$3; set --; eval "$_command" """
END = b"\n:\n"
# A hidden name: commands empty such directories by `*`.
STATE = "/dev/shm/.session"
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
# For the harness: the exit code and whether anything still runs, or that nothing was started, since other
# mounts are seen than at first.
REPORT = struct.Struct("=i?")
STALE = b"?"
CANNOT_START = 126
MOST_EXPORTED = 130_000


def serve(harness: socket.socket) -> None:
    """Start commands until the harness closes the socket."""
    control = ctypes.CDLL(None).prctl
    # Commands are of the same user. None of them may write to the memory or the files of this process and its
    # forks, which say of each command how it ended and what it left.
    control(PR_SET_DUMPABLE, 0, 0, 0, 0)
    # Ignored, these would stay so in the commands; a `pkill python` in one of them must not end the session.
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(each, ignore)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    mounts = read_mounts()
    while True:
        message, files, _, _ = socket.recv_fds(harness, 1, 5)
        if not message:
            return
        # By the first, whoever has it could forge the report of a command.
        for each in files:
            os.set_inheritable(each, False)
        if read_mounts() != mounts:
            # Whatever is replaced on the host loses the mounts on it, and so what they hold.
            os.write(files[0], STALE)
        elif not os.fork():
            try:
                control(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
                run(socket.socket(fileno=files[0]), files[1:])
            finally:
                os._exit(0)
        for each in files:
            os.close(each)


def read_mounts() -> bytes:
    """Return all mounts that this process sees, which no command can change."""
    with open("/proc/self/mountinfo", "rb") as file:
        return file.read()


def ignore(*_: object) -> None:
    """Do nothing about a signal."""


def run(control: socket.socket, files: list[int]) -> None:
    """Run one command, and report its exit code, and whether it left anything running.

    The files stay open until then: at their end the harness looks for the report at once.
    """
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, ignore)
    path = f"{STATE}-{os.getpid()}"
    left = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    text = os.pread(files[3], os.fstat(files[3]).st_size, 0)
    try:
        shell = os.posix_spawn(
            "/bin/sh", ["/bin/sh", "-c", SCRIPT, "/bin/sh", path, STATE, text], os.environ, setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            file_actions=[(os.POSIX_SPAWN_DUP2, files[each], each) for each in range(3)],
        )  # fmt: skip
    except OSError as error:
        os.write(files[2], f"the command cannot be started: {error.strerror}\n".encode())
        if error.errno != errno.E2BIG:
            # Without a report the session ends, and with it what takes up all processes or memory.
            raise
        code, lives = CANNOT_START, False
    else:
        code, lives = follow(shell, control, woken)
    # Commands may have removed it.
    with suppress(OSError):
        # Programs that get more than they can take do not start.
        is_kept = os.fstat(left).st_size < MOST_EXPORTED and os.pread(left, MOST_EXPORTED, 0).endswith(END)
        os.rename(path, STATE) if is_kept else os.unlink(path)
    control.send(REPORT.pack(code, lives))
    for each in files:
        os.close(each)


def follow(shell: int, control: socket.socket, woken: int) -> tuple[int, bool]:
    """Pass on signals until a shell ends; one that was signalled has ended when all that it started has."""
    code, number, lives = None, 0, True
    while code is None or (number and lives):
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
        if control in ready:
            # A command without a listener is killed.
            number = ord(control.recv(1) or bytes([signal.SIGKILL]))
        if control in ready or number == signal.SIGKILL:
            signal_all(descendants(os.getpid()), number)
        ended, lives = reap()
        code = ended.get(shell, code)
    return code, lives


def signal_all(processes: list[int], number: int) -> None:
    """Signal processes, some of which may have ended."""
    for each in processes:
        with suppress(OSError):
            os.kill(each, number)


def reap() -> tuple[dict[int, int], bool]:
    """Return the exit codes of children that have ended, and whether any live."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return ended, True
            ended[pid] = os.waitstatus_to_exitcode(status)
    return ended, False


def descendants(pid: int) -> list[int]:
    """Return all processes below one."""
    parents: dict[int, int] = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        # The name of a process, between the parentheses, can be any bytes.
        with suppress(OSError, IndexError), open(f"/proc/{each}/stat", "rb") as file:
            parents[int(each)] = int(file.read().rpartition(b")")[2].split()[1])
    found = [pid]
    for above in found:
        found += [each for each, parent in parents.items() if parent == above]
    return found[1:]


if __name__ == "__main__":
    for descriptor in map(int, sys.argv[1:]):
        os.set_inheritable(descriptor, False)
    serve(socket.socket(fileno=int(sys.argv[1])))
