"""Find what programs outside of a sandbox run or obey below a directory, under whatever name.

Git is asked itself, for its configuration can name further files and a directory of hooks. What it is asked
runs nothing that a repository names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from deepagents._programs import find_program
from deepagents._values import field, recordclass

_IN_GIT: Final = ".git/"
# Programs fail at an empty one, so no placeholder can stand for it; what is made there is removed.
_NEVER_EMPTY: Final = ("config", "commondir", "config.worktree", "HEAD")
_OF_A_WORKTREE: Final = ("commondir", "config.worktree", "gitdir")
_LAYOUT: Final = ("HEAD", "objects", "refs")
_LONGEST_POINTER: Final = 65_536
_SECONDS: Final = 10
_GITLINK: Final = b"160000 "

Stamp: TypeAlias = tuple[int, int, int] | None


@recordclass
class Obeyed:
    """Paths below a directory, and of each whether an empty directory may stand for it while it is missing.

    `repositories` are the real directories in which git, called there, looks for hooks and settings.
    """

    paths: dict[str, bool] = field(default_factory=dict[str, bool])
    repositories: set[str] = field(default_factory=set[str])


def find_obeyed(top: Path, protected: Sequence[str]) -> Obeyed:
    """Return what is protected below a directory.

    That is `protected`, what git reads in place of those in `.git`, and the environment of this Python. Where
    the directory is itself a `.git`, given to commands in a worktree of it, that is what git reads there.
    """
    named = () if top.name == ".git" else protected
    found = Obeyed({each: each.rpartition("/")[2] not in _NEVER_EMPTY for each in named})
    for prefix in (sys.prefix, sys.base_prefix):
        _add(found, top, Path(prefix), may_be_empty=False)
    names = [each.removeprefix(_IN_GIT) for each in protected if each.startswith(_IN_GIT)]
    if names:
        _add_what_git_obeys(found, top, names)
    return found


def find_new_repositories(
    top: Path, known: Collection[str], within: Sequence[Path]
) -> Iterator[tuple[Path, str]]:
    """Yield the repositories of a directory that were not known: the place of each, and its path in that.

    `within` are the places where commands write. The submodules of each are looked for after it was yielded,
    when it names no programs any more.
    """
    for git in _find_repositories(top):
        real = Path(os.path.realpath(git))
        place = next((each for each in within if each in real.parents), None)
        if str(real) not in known and place:
            yield place, real.relative_to(place).as_posix()


def _add_what_git_obeys(found: Obeyed, top: Path, names: Sequence[str]) -> None:
    if _find_repository(top) is None:
        # With this one, the directory could become a repository itself.
        found.paths["HEAD"] = False
    repositories = list(_find_repositories(top))
    for git in repositories:
        found.repositories.add(os.path.realpath(git))
        if git == top and top.name == ".git":
            _add_what_belongs_to_others(found, top)
        for name in names:
            _add(found, top, git / name, may_be_empty=name not in _NEVER_EMPTY)
        for each in _list_in_worktrees(top, git):
            _add(found, top, each, may_be_empty=False)
    for git in repositories[:1]:
        for path, is_directory in _named_in_configuration(_find_work(top), git):
            _add(found, top, path, may_be_empty=is_directory)


def _add_what_belongs_to_others(found: Obeyed, git: Path) -> None:
    """Add what commands in a worktree of a repository do not change: what is checked out in the main tree.

    No submodules are made there either: those are repositories too, and are looked for below work trees.
    """
    for name in ("HEAD", "index"):
        _add(found, git, git / name, may_be_empty=False)
    for each in (git, *git.glob("worktrees/*")):
        _add(found, git, each / "modules", may_be_empty=True)


def _add(found: Obeyed, top: Path, path: Path, *, may_be_empty: bool) -> None:
    for each in _below(top, path):
        found.paths.setdefault(each, may_be_empty)


def _below(top: Path, path: Path) -> list[str]:
    """Return the path from the directory, with its links and without; nothing for one that is not below."""
    both = (Path(os.path.normpath(path)), Path(os.path.realpath(path)))
    return list(dict.fromkeys(each.relative_to(top).as_posix() for each in both if top in each.parents))


def _list_in_worktrees(top: Path, git: Path) -> list[Path]:
    """Return what leads the worktrees of a repository that lie elsewhere back to it."""
    # One that lies below the directory can be removed by commands, as any directory.
    elsewhere = [
        each for each in git.glob("worktrees/*") if top not in (each / _read_pointer(each / "gitdir")).parents
    ]
    return [each / name for each in elsewhere for name in _OF_A_WORKTREE]


def _find_repositories(top: Path) -> Iterator[Path]:
    """Yield the repository of a directory, the one it shares its settings with, and those of its submodules.

    `git status` runs in each of these too.
    """
    seen: set[str] = set()
    waiting = [_find_work(top)]
    while waiting:
        work = waiting.pop()
        git = _find_repository(work)
        if git is None or os.path.realpath(git) in seen:
            continue
        seen.add(os.path.realpath(git))
        yield git
        if shared := _read_pointer(git / "commondir"):
            yield git / shared
        waiting += [work / os.fsdecode(each) for each in _list_submodules(top, git)]


def _find_work(top: Path) -> Path:
    """Return the directory or the one above it where git, called there, finds a repository."""
    return next((each for each in (top, *top.parents) if _find_repository(each)), top)


def _find_repository(work: Path) -> Path | None:
    """Return where git looks when it stands in a directory, and not in one below."""
    named = work / ".git"
    if named.is_dir():
        return named
    if (pointer := _read_pointer(named)).startswith("gitdir:"):
        return work / pointer.removeprefix("gitdir:").strip()
    return work if all((work / each).exists() for each in _LAYOUT) else None


def _read_pointer(path: Path) -> str:
    """Return the one line of a file, which a command may have made anything; nothing where it is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.fsdecode(os.read(fd, _LONGEST_POINTER)).rstrip("\n").replace("\0", "")
    except OSError:
        return ""
    finally:
        os.close(fd)


def _named_in_configuration(work: Path, git: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files that the configuration of a repository includes, and the directory of its hooks."""
    files = (*(git / each for each in ("config", "config.worktree")), *map(Path, _own_configurations()))
    stamps = tuple(map(_stamp, (*files, git / (_read_pointer(git / "commondir") or ".") / "config")))
    printed = _ask_git(str(work), str(git), ("config", "--list", "--null", "--show-origin"), stamps)
    values = iter(printed.split(b"\0"))
    for origin, entry in zip(values, values, strict=False):
        key, _, value = os.fsdecode(entry).partition("\n")
        path = Path(value).expanduser() if value else Path()
        if key == "core.hookspath":
            # Some tools name a directory of their own in that of the hooks which people write.
            hooks = work / path
            yield hooks.parent if hooks.name == "_" else hooks, True
        elif key.startswith("include") and key.endswith(".path"):
            yield Path(os.fsdecode(origin).removeprefix("file:")).parent / path, False


def _own_configurations() -> tuple[str, str]:
    home = os.environ.get("HOME", "/")
    return f"{home}/.gitconfig", f"{os.environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/config"


def _list_submodules(top: Path, git: Path) -> list[bytes]:
    index = git / "index"
    stamps = tuple(map(_stamp, (index, *git.glob("sharedindex.*"))))
    if stamps == (None,):
        return []
    entries = _ask_git(str(top), str(git), ("ls-files", "--stage", "-z"), stamps).split(b"\0")
    return [each.partition(b"\t")[2] for each in entries if each.startswith(_GITLINK)]


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


@lru_cache(maxsize=64)
def _ask_git(top: str, git: str, arguments: Sequence[str], _: Sequence[Stamp]) -> bytes:
    """Return what git says of a repository; the stamps of what it reads say when to ask again."""
    program = find_program("git", [Path(top)])
    if program is None:
        return b""
    kept = {each: os.environ[each] for each in ("HOME", "XDG_CONFIG_HOME") if each in os.environ}
    # It fetches nothing either, which it would do by programs that a repository names.
    kept["GIT_ALLOW_PROTOCOL"] = "none"
    try:
        return subprocess.run(
            (program, "-c", "core.fsmonitor=false", f"--git-dir={git}", *arguments),
            cwd="/", env=kept, timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return b""
