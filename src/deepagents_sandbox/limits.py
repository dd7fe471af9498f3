"""Bound what a confined command and all that it starts may use together: memory, processes, disk.

Memory and processes are bounded by control groups where this process may make some (version 2 where it is
delegated, version 1 where it is writable), else by a watchdog that looks at processes many times a second.
Disk has no control group, so the watchdog looks at it always.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Final
from uuid import uuid4

from deepagents._values import field, recordclass, valueclass

_CGROUPS: Final = Path("/sys/fs/cgroup")
_PREFIX: Final = "deepagents-"
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
# Seconds between two looks. A process writes memory at some GiB a second, so it can pass its limit by that
# much until the next look.
LOOK_EVERY: Final = 0.02
_LOOK_AT_DISK_EVERY: Final = 0.05
# Neither memory that processes share, nor files of memory.
_OF_A_DISK: Final = re.compile(r" /(?!memfd:|SYSV|dev/zero|\[aio\])")
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")


@valueclass
class CommandLimits:
    """Bounds for one command, in bytes and in processes."""

    memory: int
    processes: int
    disk: int

    def describe(self, bound: str) -> str:
        """Say in words that a bound was passed."""
        match bound:
            case "memory":
                return f"it used more than {self.memory >> 20} MiB of memory"
            case "disk":
                return f"it wrote more than {self.disk >> 20} MiB to the disk"
            case _:
                return f"it started more than {self.processes} processes"


@valueclass
class Controllers:
    """Where control groups can be made: one directory where version 2 serves, one for each of version 1."""

    memory: Path | None = None
    pids: Path | None = None

    @property
    def is_complete(self) -> bool:
        """Return whether both memory and processes are bounded by the kernel."""
        return self.memory is not None and self.pids is not None


@lru_cache(maxsize=1)
def find_controllers() -> Controllers:
    """Return where this process may make control groups, found out by making some."""
    own = _own_groups()
    two = _CGROUPS / own.get("", "/").lstrip("/") if (_CGROUPS / "cgroup.controllers").exists() else None
    if two is not None and _can_make(two, "memory.max", "pids.max"):
        return Controllers(two, two)
    one = {
        name: _CGROUPS / name / own.get(name, "/").lstrip("/")
        for name in ("memory", "pids")
        if (_CGROUPS / name).is_dir()
    }
    memory, pids = one.get("memory"), one.get("pids")
    return Controllers(
        memory if memory and _can_make(memory, "memory.limit_in_bytes") else None,
        pids if pids and _can_make(pids, "pids.max") else None,
    )


def _own_groups() -> dict[str, str]:
    """Return the group of this process for each controller; that of version 2 has an empty name."""
    groups: dict[str, str] = {}
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        groups |= dict.fromkeys(controllers.split(","), path)
    return groups


def _can_make(parent: Path, *files: str) -> bool:
    probe = parent / f"{_PREFIX}probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        return all(os.access(probe / name, os.W_OK) for name in (*files, "cgroup.procs"))
    finally:
        probe.rmdir()


@valueclass
class ControlGroup:
    """The control groups of one command."""

    directories: tuple[Path, ...]

    @classmethod
    def choose(cls) -> ControlGroup:
        """Choose names for the groups of one command; none where this process may not make any."""
        controllers = find_controllers()
        name = f"{_PREFIX}{os.getpid()}-{uuid4().hex[:12]}"
        parents = dict.fromkeys(filter(None, (controllers.memory, controllers.pids)))
        return cls(tuple(parent / name for parent in parents))

    @contextmanager
    def hold(self, limits: CommandLimits) -> Generator[None]:
        """Make the groups with their bounds, and remove them with whatever is left in them."""
        bounds = {
            "memory.max": limits.memory, "memory.swap.max": 0, "memory.limit_in_bytes": limits.memory,
            "memory.memsw.limit_in_bytes": limits.memory, "pids.max": limits.processes,
        }  # fmt: skip
        try:
            for directory in self.directories:
                directory.mkdir()
                for file, bound in bounds.items():
                    _write_if_there(directory / file, bound)
            yield
        finally:
            self._remove()

    def enter(self) -> list[str]:
        """Return the beginning of a command line that enters the groups before anything of it runs."""
        if not self.directories:
            return []
        # 0 stands for the process that writes it.
        script = (
            'for each; do shift; [ "$each" = -- ] && break; echo 0 > "$each/cgroup.procs" || exit 125; done; '
            'exec "$@"'
        )
        return ["/bin/sh", "-c", script, "sh", *map(str, self.directories), "--"]

    def describe_enforced(self, limits: CommandLimits) -> str | None:
        """Say which bound the kernel enforced, if any, by ending a process or by refusing one."""
        for directory in self.directories:
            for file in ("memory.events", "memory.oom_control", "pids.events"):
                found = map(str.split, _lines(f"{directory}/{file}"))
                counts = {each[0]: each[1] for each in found if len(each) == 2}
                if int(counts.get("oom_kill", 0)):
                    return limits.describe("memory")
                if file == "pids.events" and int(counts.get("max", 0)):
                    return limits.describe("processes")
        return None

    def _remove(self) -> None:
        for directory in self.directories:
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline and not _try_to_remove(directory):
                time.sleep(0.005)


def _write_if_there(file: Path, bound: int) -> None:
    # Which of these files there are depends on version, controller and kernel.
    with suppress(OSError):
        if file.exists():
            file.write_text(str(bound))


def _try_to_remove(directory: Path) -> bool:
    for line in _lines(f"{directory}/cgroup.procs"):
        with suppress(OSError):
            os.kill(int(line), 9)
    try:
        directory.rmdir()
    except OSError:
        return False
    return True


def _lines(path: str) -> list[str]:
    try:
        # A name can be any bytes, and only a newline ends a line.
        with open(path, errors="surrogateescape", newline="\n") as file:
            return [line.removesuffix("\n") for line in file]
    except OSError:
        return []


@recordclass
class Watchdog:
    """Looks at what a command uses while it runs, and says which bound it passed."""

    limits: CommandLimits
    directories: Sequence[Path]
    watches_processes: bool
    _places: Sequence[Path] = field(init=False)
    _free: list[int] = field(init=False)
    _started: float = field(init=False)
    _next_look_at_disk: float = 0.0

    def __post_init__(self) -> None:
        # File times are as coarse as the tick of the kernel's clock.
        self._started = time.time() - 0.05
        self._places = (*self.directories, *_mounts_below(self.directories))
        self._free = [_free_bytes(each) for each in self._places]

    def describe_excess(self, pid: int) -> str | None:
        """Say which bound is passed now by a process and all that it started."""
        excess = self._find_excess(pid)
        return self.limits.describe(excess) if excess else None

    def _find_excess(self, pid: int) -> str | None:
        """Return which bound is passed now: `memory`, `processes` or `disk`."""
        if self.watches_processes:
            processes = list(_descendants(pid))
            if len(processes) > self.limits.processes:
                return "processes"
            temporary = _temporary_files(processes)
            # Memory that processes share counts once, but finding out takes longer: only when it matters.
            if (
                temporary + sum(map(_resident, processes)) > self.limits.memory
                and temporary + _memory(processes) > self.limits.memory
            ):
                return "memory"
        now = time.monotonic()
        if now < self._next_look_at_disk:
            return None
        self._next_look_at_disk = now + _LOOK_AT_DISK_EVERY
        # Free space falls when anybody writes, and walking over files is slow: each alone would be wrong.
        fallen = sum(
            max(was - _free_bytes(each), 0) for was, each in zip(self._free, self._places, strict=True)
        )
        if fallen > self.limits.disk and self._count_written(pid) > self.limits.disk:
            return "disk"
        return None

    def _count_written(self, pid: int) -> int:
        """Return the size of all files that changed since the start, removed ones that are open included."""
        seen: set[tuple[int, int]] = set()
        written = 0
        for status in self._find_changed(pid):
            if status is None:
                # What nobody can look into, such as a directory too deep: only what is free tells then.
                return self.limits.disk + 1
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                written += status.st_blocks * 512
            # To count all the rest would take time in which more is written.
            if written > self.limits.disk:
                break
        return written

    def _find_changed(self, pid: int) -> Iterator[os.stat_result | None]:
        for process in _descendants(pid):
            yield from (status for status in _open_files(process) if not status.st_nlink)
            if _hides_files(process):
                yield None
        for directory in self.directories:
            for status in _walk(str(directory)):
                if status is None or max(status.st_mtime, status.st_ctime) >= self._started:
                    yield status


def _free_bytes(directory: Path) -> int:
    """Return what is free there; nothing where it is gone, so that what was written is counted."""
    try:
        status = os.statvfs(directory)
    except OSError:
        return 0
    return status.f_bfree * status.f_frsize


def _mounts_below(directories: Sequence[Path]) -> list[Path]:
    """Return where other file systems are mounted in directories: what is free there falls on its own."""
    # The fifth field, with the characters that separate fields written as numbers (proc(5)).
    points = [os.fsencode(line.split(" ")[4]) for line in _lines("/proc/self/mountinfo")]
    paths = [Path(os.fsdecode(_ESCAPED.sub(lambda each: bytes([int(each[1], 8)]), each))) for each in points]
    return [path for path in paths if any(each in path.parents for each in directories)]


def _walk(top: str) -> Iterator[os.stat_result | None]:
    """Yield what is known of each entry below a directory, and `None` for a directory that cannot be read."""
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                yield from _look_at(entries, waiting)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            yield None


def _look_at(entries: Iterator[os.DirEntry[str]], directories: list[str]) -> Iterator[os.stat_result]:
    for entry in entries:
        with suppress(FileNotFoundError):
            yield entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.path)


def _descendants(pid: int) -> Iterator[int]:
    """Yield a process and all that it started; what lost its parent belongs to the first one inside."""
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        yield each
        with suppress(OSError):
            for task in os.listdir(f"/proc/{each}/task"):
                waiting += map(int, Path(f"/proc/{each}/task/{task}/children").read_text().split())


def _resident(pid: int) -> int:
    """Return the memory of one process, and its memory files, whose pages no process need map."""
    size = 0
    with suppress(OSError, IndexError, ValueError):
        size = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return size + sum(_memory_files(pid).values())


def _memory(processes: Sequence[int]) -> int:
    files: dict[int, int] = {}
    total = 0
    for pid in processes:
        files |= _memory_files(pid)
        total += _share(pid)
    return total + sum(files.values())


def _share(pid: int) -> int:
    """Return the memory of one process, with its share of what others use too."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except PermissionError:
        # A process can close itself to others. That must not make it smaller.
        return _resident(pid)
    except (OSError, StopIteration):
        return 0


def _temporary_files(processes: Sequence[int]) -> int:
    """Return what is in the temporary directories of a sandbox, which is memory that no process has."""
    for pid in processes[1:]:
        try:
            return sum(_count_used(pid, each) for each in ("/tmp", "/dev/shm"))
        except OSError:
            continue
    return 0


def _count_used(pid: int, directory: str) -> int:
    # Held, as it becomes another one while bubblewrap builds the view of a process.
    inside = os.open(f"/proc/{pid}/root{directory}", os.O_PATH)
    try:
        # Before that, and where a directory was given, this is the host's.
        if os.fstat(inside).st_dev == os.stat(directory).st_dev:
            return 0
        status = os.fstatvfs(inside)
    finally:
        os.close(inside)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def _memory_files(pid: int) -> dict[int, int]:
    """Return the memory files that a process holds open, and their sizes; mapped or not, they use memory."""
    return {each.st_ino: each.st_blocks * 512 for each in _open_files(pid, "/memfd:")}


def _hides_files(pid: int) -> bool:
    """Return whether a process may hold removed files that it has not open: mapped, or in a socket."""
    if any(line.endswith(" (deleted)") and _OF_A_DISK.search(line) for line in _lines(f"/proc/{pid}/maps")):
        return True
    with suppress(OSError):
        # How many open files wait in a socket to be received (Linux 5.6).
        infos = [_lines(f"/proc/{pid}/fdinfo/{each}") for each in os.listdir(f"/proc/{pid}/fdinfo")]
        return any(line.startswith("scm_fds:") and line.split()[1] != "0" for info in infos for line in info)
    return False


def _open_files(pid: int, prefix: str = "/") -> Iterator[os.stat_result]:
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(f"/proc/{pid}/fd")
    for name in names:
        path = f"/proc/{pid}/fd/{name}"
        with suppress(OSError):
            if os.readlink(path).startswith(prefix):
                yield os.stat(path)
