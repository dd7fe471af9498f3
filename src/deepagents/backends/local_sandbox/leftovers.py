"""Keep protected paths from being made, and leave no trace of it: for one call, or if this process is killed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# What `git init` and `git clone` write, and what runs nothing. Other keys of a new configuration are dropped: git on
# the host would run what core.fsmonitor, core.hooksPath, filters and aliases name.
_GIT_KEYS: Final = re.compile(
    r"\s*(\[(core|user|init|remote \"[\w./-]+\"|branch \"[\w./-]+\")\]"
    r"|(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks) = \w+"
    r"|(name|email|fetch|remote|merge|defaultBranch) = [^\\]*|url = (?!.*::)[^\\]*)\s*",
    re.IGNORECASE,
)


# Runs beside a command and waits for a line from the harness. The end of the pipe instead of a line means that
# the harness was killed. Then the kernel kills the sandbox, at this moment or the next; a placeholder is removed
# only under the lock that every running command shares, for on it something may be mounted.
_GUARD: Final = r"""
read -r _ && exit
root=$1; shift
for try in 1 2 3 4 5 6 7 8 9 10; do
    left=
    for each; do
        if [ -d "$each" ]; then
            while read -r process; do kill -9 "$process"; done < "$each/cgroup.procs"
            rmdir "$each" || left=1
        elif [ -f "$each" ] && [ ! -s "$each" ]; then
            if command -v flock; then flock -n "$root" rm -f "$each" || left=1; else rm -f "$each"; fi
        fi
    done
    [ -z "$left" ] && exit
    sleep 0.2
done
"""


@contextmanager
def guard(root: Path, leftovers: Sequence[Path]) -> Generator[None]:
    """Have a small program remove these, empty files and control groups, if this process is killed meanwhile."""
    if not leftovers:
        yield
        return
    # A session of its own: Ctrl-C and the end of a terminal must not end it first.
    process = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", str(root), *map(str, leftovers)], env={"PATH": os.defpath}, cwd="/",
        start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            process.communicate(b"\n")


@contextmanager
def hold_root(root: Path) -> Generator[None]:
    """Share the lock of a root with all commands that run in it."""
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_SH)
        yield
    finally:
        os.close(directory)


@dataclass(frozen=True, slots=True)
class Protection:
    """What must not be changed below a root: what is there, what must not be made, what is removed if it was.

    A path whose directory is missing too is not kept from being made, or `git init` could not work: what was
    made there is gone after the call.
    """

    root: Path
    existing: tuple[Path, ...]
    missing: tuple[Path, ...]
    unborn: tuple[str, ...]

    @classmethod
    def look(cls, root: Path, protected: Sequence[str]) -> Protection:
        """Look at what is there of the protected paths; no link on the way is followed."""
        existing: list[Path] = []
        missing: list[Path] = []
        unborn: list[str] = []
        for relative in protected:
            path = root / relative
            if _real_directory(root, Path(relative).parent) is None:
                unborn.append(relative)
            elif not os.path.lexists(path) or _is_placeholder(path):
                missing.append(path)
            elif not path.is_symlink():
                existing.append(path)
        return cls(root, tuple(existing), tuple(missing), tuple(unborn))

    @contextmanager
    def hold(self) -> Generator[Sequence[Path]]:
        """Put a placeholder where nothing may be made, and yield what a command must not change."""
        try:
            for path in self.missing:
                with suppress(FileExistsError):
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY, 0))
            yield (*self.existing, *self.missing)
        finally:
            for relative in self.unborn:
                _remove_new(self.root, relative)

    def tidy(self) -> None:
        """Remove the placeholders, unless another command that runs here needs them; the last one does."""
        directory = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self.missing:
                if _is_placeholder(path):
                    path.unlink(missing_ok=True)
        except BlockingIOError:
            return
        finally:
            os.close(directory)


def _is_placeholder(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and not status.st_size and not stat.S_IMODE(status.st_mode)


def _real_directory(root: Path, relative: Path) -> Path | None:
    """Return a directory below a root if it is there, and no link is on the way: a command may have made one."""
    path = root
    for part in relative.parts:
        path /= part
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            return None
        if not stat.S_ISDIR(mode):
            return None
    return path


def _remove_new(root: Path, relative: str) -> None:
    path = root / relative
    if _real_directory(root, Path(relative).parent) is None or not os.path.lexists(path):
        return
    if relative == ".git/config" and path.is_file() and not path.is_symlink():
        lines = path.read_text(errors="replace").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if _GIT_KEYS.fullmatch(line)))
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
