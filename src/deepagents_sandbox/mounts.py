"""Decide what a confined command sees of this machine, as options of bubblewrap."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from deepagents._values import field, recordclass, valueclass
from deepagents_sandbox.rules import Mode

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What programs need of /etc to start, to find libraries and time zones, and to check certificates. Not all of
# it: it holds passwords, and the keys of this machine.
_ETC: Final = (
    "alternatives", "ca-certificates", "crypto-policies", "fonts", "gai.conf", "host.conf", "java*-openjdk",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "mime.types", "nsswitch.conf",
    "os-release", "perl", "pki/ca-trust", "pki/tls/certs", "protocols", "python3*", "services", "ssl/certs",
    "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip
# Parts of /proc that change the kernel, or tell of it or of other processes, for whoever runs as root. 1 is
# bubblewrap itself: by its `exe`, whose mount is the host's, its owner could change the mode of that program.
_PROC: Final = (
    "1", "acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "interrupts", "irq", "kallsyms", "kcore",
    "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "mtrr",
    "pagetypeinfo", "scsi", "sched_debug", "slabinfo", "sys", "sysrq-trigger", "timer_list", "timer_stats",
    "vmallocinfo",
)  # fmt: skip
HOME: Final = "/tmp/home"
_USER: Final = 1000
_SHARED_MEMORY: Final = 64 << 20
_FILES: Final = {
    "/etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nsandbox:x:{_USER}:{_USER}:sandbox:{HOME}:/bin/sh\n",
    "/etc/group": f"root:x:0:\nsandbox:x:{_USER}:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}


@valueclass
class View:
    """What a command sees: real paths, each at its own place.

    `frozen` are existing paths in what it is `given` that cannot be changed, and `modes` says of others there
    what rules make of them.
    """

    root: Path
    given: Mapping[Path, Mode]
    frozen: Sequence[Path] = ()
    modes: Mapping[Path, Mode] = field(default_factory=dict[Path, Mode])
    shares_network: bool = False
    temporary_bytes: int = 1 << 30
    hold_path: Callable[[Path], str] | None = None
    """Opens a path, where bubblewrap takes open ones: another call may put a link in its place."""

    def options(self, disable_namespaces: bool, descriptor: Callable[[bytes], str]) -> Iterator[str]:
        """Yield the options of bubblewrap; `descriptor` opens a file that has these bytes."""
        yield from ("--unshare-all", "--unshare-user", "--uid", str(_USER), "--gid", str(_USER))
        if self.shares_network:
            yield "--share-net"
        if disable_namespaces:
            yield "--disable-userns"
        yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
        yield from _system()
        # One file system for all that is temporary, so that it has one bound.
        yield from ("--size", str(self.temporary_bytes), "--perms", "1777", "--tmpfs", "/tmp", "--dir", HOME)
        yield from ("--symlink", "../tmp", "/var/tmp", "--size", str(_SHARED_MEMORY), "--tmpfs", "/dev/shm")
        files = {place: content.encode() for place, content in _FILES.items()}
        files |= {str(path): content for path in _files_of_etc() if (content := _content(path))}
        if self.shares_network and (names := _content(Path("/etc/resolv.conf"))):
            files["/etc/resolv.conf"] = names
        # Copies, for bubblewrap takes its time for each mount.
        for place, content in files.items():
            yield from ("--perms", "0444", "--file", descriptor(content), place)
        yield from self._mount_given()
        yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(self.root))

    def _mount_given(self) -> Iterator[str]:
        modes: dict[Path, Mode] = {**self.given, **self.modes}
        modes |= {path: "readable" for path in self.frozen if modes.get(path) != "hidden"}
        done: dict[Path, Mode] = {}
        sealed: list[str] = []
        # The outer ones first, or they would cover the inner ones.
        for path in sorted(modes, key=lambda each: len(each.parts)):
            above = _mode_above(path, done)
            # In a hidden directory there is nothing; one that was given on its own is there all the same.
            if path not in self.given and above == "hidden":
                continue
            yield from self._hold_parents(path, done)
            done[path] = modes[path]
            if modes[path] != "hidden":
                yield from self._mount(modes[path], path)
            elif path.is_dir():
                # Commands start in the root, so they must be able to enter it.
                yield from ("--perms", "0555" if path == self.root else "0000", "--tmpfs", str(path))
                sealed += ("--remount-ro", str(path))
            else:
                yield from ("--ro-bind", os.devnull, str(path))
        yield from sealed

    def _mount(self, mode: Mode, path: Path) -> Iterator[str]:
        option = "--bind" if mode == "writable" else "--ro-bind"
        if self.hold_path:
            yield from (f"{option}-fd", self.hold_path(path), str(path))
        else:
            yield from (option, str(path), str(path))

    def _hold_parents(self, path: Path, done: dict[Path, Mode]) -> Iterator[str]:
        """Mount each directory between a mount and what lies in it on itself: a mount cannot be renamed.

        Else `mv .git old && mkdir -p .git/hooks` would bypass a hook directory that is read-only.
        """
        for parent in reversed(path.parents):
            above = _mode_above(parent, done) or "writable"
            inside = any(each in parent.parents for each in self.given)
            if inside and parent not in done and above != "hidden":
                done[parent] = above
                yield from self._mount(above, parent)


def _mode_above(path: Path, done: Mapping[Path, Mode]) -> Mode | None:
    for each in path.parents:
        if each in done:
            return done[each]
    return None


@recordclass
class Descriptors:
    """Files in memory that a program is given open, for one start of it."""

    open: list[int] = field(default_factory=list[int])

    def __enter__(self) -> Descriptors:
        return self

    def __exit__(self, *raised: object) -> None:
        for each in self.open:
            os.close(each)

    def hold_path(self, path: Path) -> str:
        """Open a path by way of no link, and return its number."""
        flags = os.O_PATH | os.O_NOFOLLOW
        fd = os.open(path.anchor, flags)
        for part in path.parts[1:]:
            try:
                below = os.open(part, flags, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        self.open.append(fd)
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return str(fd)

    def hold(self, content: bytes) -> str:
        """Open a file with this content, and return its number."""
        fd = os.memfd_create("sandbox")
        self.open.append(fd)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(content)
        os.lseek(fd, 0, os.SEEK_SET)
        return str(fd)


def find_interpreter() -> tuple[str, list[Path]]:
    """Return a Python for programs of ours in the sandbox, and what must be readable for it."""
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    # A process that changed its user may not reach its own any more.
    if not os.access(python, os.X_OK):
        return "/usr/bin/python3", []
    prefix = Path(sys.base_prefix).resolve()
    return python, [] if prefix.is_relative_to("/usr") else [prefix]


def _content(path: Path) -> bytes:
    # Its content, for on many machines this is a link, or a file that changes.
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _in_etc() -> Iterator[Path]:
    for pattern in _ETC:
        yield from Path("/etc").glob(pattern)


# These are asked once, for each look takes a share of the time that a command needs to start.
@cache
def _files_of_etc() -> tuple[Path, ...]:
    return tuple(path for path in _in_etc() if path.is_file())


@cache
def _system() -> tuple[str, ...]:
    return tuple(_look_at_system())


def _look_at_system() -> Iterator[str]:
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), name)
        elif path.is_dir():
            yield from ("--ro-bind", name, name)
    for path in _in_etc():
        if path.is_dir():
            # By now it may be gone.
            yield from ("--ro-bind-try", str(path), str(path))
    yield from _processes()
    yield from ("--dev", "/dev")


def _processes() -> Iterator[str]:
    yield from ("--proc", "/proc")
    for name in _PROC:
        path = f"/proc/{name}"
        if os.path.isdir(path):
            yield from ("--ro-bind", path, path) if name == "sys" else ("--tmpfs", path, "--remount-ro", path)
        # What this user cannot open on the host, a command cannot either.
        elif os.access(path, os.R_OK) or os.access(path, os.W_OK):
            yield from ("--ro-bind", os.devnull, path)
