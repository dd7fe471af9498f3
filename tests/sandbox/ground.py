"""The ground of the attacks: a workspace, and around it everything that a command in it must not reach.

Run as a program, it becomes the user that it is told, builds the ground as that user, tries one set of
attacks with one backend, and prints what came of each as JSON. A process of its own, for a user cannot be
changed back.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepagents.backends import LocalSandbox, LocalShellBackend

SECRET = "canary-7d1f0c"
USER = 12_345
_IPC_CREAT, _IPC_RMID = 0o1000, 0
_PR_SET_DUMPABLE = 4


@dataclass
class Ground:
    """A directory with a workspace, secrets beside it, and servers and processes of this machine."""

    top: Path
    received: list[bytes] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """Where commands run."""
        return self.top / "work"

    @property
    def outside(self) -> Path:
        """A directory beside the workspace, with a secret in it."""
        return self.top / "outside"

    def fill(self, command: str) -> str:
        """Put the names of this ground in the place of `{...}` in a command."""
        for name, value in self.environment.items():
            command = command.replace("{" + name + "}", value)
        return command


@contextmanager
def ground() -> Generator[Ground]:
    """Build everything, and remove it."""
    top = Path(tempfile.mkdtemp(prefix="attacks-", dir="/var/tmp")).resolve()
    built = Ground(top)
    (top / "home/.ssh").mkdir(parents=True)
    (top / "home/.ssh/id").write_text(SECRET)
    (top / "home/.profile").write_text("true\n")
    built.outside.mkdir()
    (built.outside / "secret.txt").write_text(SECRET)
    (built.outside / "notes.txt").write_text("old\n")
    (top / "other").mkdir()
    (top / "other/secret.txt").write_text(SECRET)
    shared = Path(f"/dev/shm/attacks-{os.getpid()}")
    shared.write_text(SECRET)
    make_workspace(built)
    canary = subprocess.Popen(
        [sys.executable if os.access(sys.executable, os.X_OK) else "/usr/bin/python3", "-I", "-S", "-c", _CANARY, SECRET],
        env={"CANARY_SECRET": SECRET}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=built.outside,
    )  # fmt: skip
    assert canary.stdout is not None
    address = int(canary.stdout.readline())
    with _servers(built) as ports, _shared_memory() as segment:
        built.environment = {
            "top": str(top), "out": str(built.outside), "canary": str(canary.pid), "address": str(address),
            "me": str(os.getpid()), "shm": str(segment), "shared": str(shared), "secret": SECRET, **ports,
        }  # fmt: skip
        try:
            yield built
        finally:
            canary.kill()
            canary.wait()
            shared.unlink(missing_ok=True)
            shutil.rmtree(top, ignore_errors=True)


def make_workspace(built: Ground) -> None:
    """Make the workspace anew, so that no attack meets what an earlier one left."""
    for each in (built.workspace, built.top / "work2", built.top / "old"):
        shutil.rmtree(each, ignore_errors=True)
    built.workspace.mkdir()
    (built.workspace / "a.txt").write_text("mine\n")
    hooks = built.workspace / "repo/.git/hooks"
    hooks.mkdir(parents=True)
    git = built.workspace / ".git"
    (git / "hooks").mkdir(parents=True)
    (git / "config").write_text("[core]\n\tbare = false\n")
    (git / "objects").mkdir()
    (git / "refs").mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")


_CANARY = """
import ctypes, sys, time
text = ctypes.create_string_buffer(sys.argv[1].encode())
secret = open('secret.txt')
print(ctypes.addressof(text), flush=True)
sys.stdin.read()
"""


@contextmanager
def _servers(built: Ground) -> Generator[dict[str, str]]:
    """Listen on every kind of socket; whoever connects gets the secret, whatever comes is noted."""
    stream = [
        (socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0)),
        (socket.AF_UNIX, str(built.outside / "socket")), (socket.AF_UNIX, f"\0attacks-{os.getpid()}"),
        (socket.AF_UNIX, str(built.top / "in-work")),
    ]  # fmt: skip
    opened: list[socket.socket] = []
    for family, address in stream:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen()
        opened.append(listener)
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    named: list[tuple[int, Any]] = [
        (socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, str(built.outside / "datagrams")),
        (socket.AF_UNIX, f"\0attacks-{os.getpid()}-d"),
    ]  # fmt: skip
    for family, address in named:
        datagrams = socket.socket(family, socket.SOCK_DGRAM)
        datagrams.bind(address)
        opened.append(datagrams)
        threading.Thread(target=_receive, args=(datagrams, built.received), daemon=True).start()
    try:
        yield {
            "tcp": str(opened[0].getsockname()[1]), "tcp6": str(opened[1].getsockname()[1]),
            "abstract": f"attacks-{os.getpid()}", "udp": str(opened[len(stream)].getsockname()[1]),
        }  # fmt: skip
    finally:
        for each in opened:
            each.close()


def _serve(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            with suppress(OSError), client:
                client.sendall(SECRET.encode())


def _receive(datagrams: socket.socket, received: list[bytes]) -> None:
    with suppress(OSError):
        while True:
            received.append(datagrams.recv(1024))


@contextmanager
def _shared_memory() -> Generator[int]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(0x5EC0 + os.getpid() % 4096, 4096, _IPC_CREAT | 0o600)
    address = libc.shmat(segment, None, 0)
    ctypes.memmove(address, SECRET.encode(), len(SECRET))
    try:
        yield segment
    finally:
        libc.shmctl(segment, _IPC_RMID, None)


def main() -> None:
    """Arguments: the user to become, and the backend; attacks come as JSON on standard input."""
    user, kind = int(sys.argv[1]), sys.argv[2]
    attacks: list[dict[str, Any]] = json.load(sys.stdin)
    # The network, subprocesses and encodings are imported by now: files of root may be out of reach from
    # here.
    if user and os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        # A process that changed its user is closed to others of that user, unlike any that they start.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1)
    results: dict[str, Any] = {}
    with ground() as built, ExitStack() as stack:
        # One session for all attacks, as an agent would have it. It starts anew with the workspace, which
        # would take most of the time, so that is made anew only when an attack changed it.
        session = (
            stack.enter_context(LocalSandbox(built.workspace, timeout=20, session=True))
            if kind == "session"
            else None
        )
        before = _list(built.workspace)
        built.environment["tries"] = "200" if kind == "shell" else "12"
        for attack in attacks:
            if session is None or _list(built.workspace) != before:
                make_workspace(built)
            (built.outside / "notes.txt").write_text("old\n")
            (built.outside / "notes.txt").chmod(0o644)
            own = session if not attack["options"] else None
            results[attack["name"]] = _attempt(built, kind, attack, own)
    json.dump(results, sys.stdout)


def _list(workspace: Path) -> list[str]:
    """Describe a workspace, without the placeholders of a session that runs in it."""
    found = [each for each in workspace.rglob("*") if workspace.is_dir()]
    return sorted(
        f"{each} {each.read_bytes() if each.is_file() else each.is_dir()}"
        for each in found
        if not each.is_dir() or not each.stat().st_mode & stat.S_ISVTX
    )


def _attempt(
    built: Ground, kind: str, attack: dict[str, Any], session: LocalSandbox | None
) -> dict[str, Any]:
    options = json.loads(built.fill(json.dumps(attack["options"])))
    if kind == "shell":
        backend: Any = LocalShellBackend(built.workspace, timeout=20, inherit_env=["HARNESS_SECRET"])
    else:
        backend = session or LocalSandbox(built.workspace, timeout=20, session=kind == "session", **options)
    built.received.clear()
    if attack["setup"]:
        subprocess.run(["/bin/sh", "-c", built.fill(attack["setup"])], cwd=built.workspace, check=True)
    output = ""
    for command in attack["commands"]:
        output += backend.execute(built.fill(command)).output + "\n"
    if backend is not session:
        backend.close()
    check = attack.get("check")
    if check:
        # Run by the host, as its programs would: what counts is what the command left there.
        done = subprocess.run(
            ["/bin/sh", "-c", built.fill(check)],
            cwd=built.workspace if built.workspace.is_dir() else built.top,
            capture_output=True,
            text=True,
            timeout=20,
        )
        output += f"\n[check] {done.stdout}{done.stderr}"
        succeeded = done.returncode == 0
    else:
        succeeded = SECRET in output or "PWNED" in output or SECRET.encode() in b"".join(built.received)
    return {"succeeded": succeeded, "output": output[-800:]}


if __name__ == "__main__":
    signal.alarm(540)
    main()
    time.sleep(0)
