"""Check the paths of this machine that a sandbox was given, and what of them the file tools may change."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from deepagents._paths import is_within
from deepagents._values import valueclass
from deepagents.backends.filesystem.confined_dir import ConfinedDirectory
from deepagents.backends.filesystem.paths import ResolvedPath, check_path
from deepagents.backends.protocol import Allowed
from deepagents.errors import BackendError, ConfigError
from deepagents_sandbox.rules import Mode

_NOT_GIVEN: Final = ("/dev", "/proc", "/sys")


def find_given(
    root: Path, readable: Sequence[str | Path], writable: Sequence[str | Path]
) -> dict[Path, Mode]:
    """Return what a sandbox is given, the root first; what is in both lists is writable.

    Raises:
        ConfigError: for what is not there, or is not a place for files.
    """
    _check_list("readable", readable)
    _check_list("writable", writable)
    given: dict[Path, Mode] = dict.fromkeys((root, *map(_existing, writable)), "writable")
    for path in map(_existing, readable):
        given.setdefault(path, "readable")
    return given


def find_environment(python: str | Path, path: str) -> tuple[list[Path], dict[str, str]]:
    """Return what a command needs to read for an environment of Python, and its variables before `path`.

    Raises:
        ConfigError: where there is no environment.
    """
    prefix = Path(python).expanduser().resolve()
    program = prefix / "bin/python"
    if not program.exists():
        raise ConfigError(
            f"python must be the directory of an environment, such as sys.prefix: there is no {program}"
        )
    # What it was made of has the standard library.
    base = Path(os.path.realpath(program)).parents[1]
    variables = {"PATH": f"{prefix}/bin:{path}", "VIRTUAL_ENV": str(prefix)}
    return [each for each in (prefix, base) if not each.is_relative_to("/usr")], variables


@valueclass
class MountedPaths:
    """The paths of this machine that a sandbox was given; relative ones start at its root."""

    cwd: Path
    given: Mapping[Path, Mode]
    start: ClassVar[str] = "."

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve a path of this machine.

        Raises:
            BackendError: `invalid_path`, or `permission_denied` for what the sandbox was not given.
        """
        check_path(path)
        full = Path(os.path.normpath(self.cwd / path))
        holding = [each for each in self.given if full.is_relative_to(each)]
        if not holding:
            given = ", ".join(map(str, self.given))
            raise BackendError("permission_denied", f"'{full}' is outside of the sandbox, which has {given}.")
        top = max(holding, key=lambda each: len(each.parts))
        if top == full and top.is_file():
            # A file that was given is reached from its directory, by its name alone.
            top = top.parent
        parts = full.relative_to(top).parts
        return ResolvedPath(
            ConfinedDirectory(top), parts, full.as_posix(), lambda names: top.joinpath(*names).as_posix()
        )

    def is_undeletable(self, parts: tuple[str, ...]) -> bool:
        """Return whether this may never be deleted: a directory that was given."""
        return not parts


@valueclass
class MayChange:
    """An `Allowed` for changes: nothing protected, nothing outside of what is writable.

    What is protected `in_git` is so in every repository, and so is a file `.git`, which can name any other.
    """

    given: Mapping[str, Mode]
    protected: Sequence[str] = ()
    in_git: Sequence[str] = ()
    further: Allowed | None = None

    def __call__(self, path: str) -> bool:
        """Return whether one path may be changed."""
        # The innermost directory decides: one to read may lie in one to write, and the other way round.
        innermost = max((each for each in self.given if is_within(path, each)), key=len, default="")
        return (
            self.given.get(innermost) == "writable"
            and not _is_in(path, self.protected)
            and not self._is_in_git(path)
            and (self.further is None or self.further(path))
        )

    def _is_in_git(self, path: str) -> bool:
        folded = f"{path.rstrip('/')}/".casefold()
        named = any(f"/{each}/".casefold() in folded for each in self.in_git)
        return named or (bool(self.in_git) and folded.endswith("/.git/"))

    def all_below(self, directory: str) -> bool:
        """Return whether everything below a directory may be changed."""
        readable = [path for path, mode in self.given.items() if mode == "readable"]
        return (
            self(directory)
            and not any(_is_in(each, (directory,)) for each in (*self.protected, *readable))
            and (self.further is None or self.further.all_below(directory))
        )


def _is_in(path: str, directories: Sequence[str]) -> bool:
    # Whether this file system ignores case is not known, and then `.GIT/hooks` would be the protected one.
    folded = f"{path.rstrip('/')}/".casefold()
    return any(folded.startswith(f"{each.rstrip('/')}/".casefold()) for each in directories)


def _existing(path: str | Path) -> Path:
    full = Path(path).expanduser().resolve()
    if not full.exists():
        raise ConfigError(f"{str(path)!r} does not exist; a sandbox can be given existing paths only")
    if is_of_the_machine(full):
        raise ConfigError(
            f"{str(path)!r} holds processes and devices of this machine; give directories of files"
        )
    return full


def is_of_the_machine(path: Path) -> bool:
    """Return whether a path is the root of this machine, or holds its processes and devices."""
    return path.parent == path or any(path.is_relative_to(each) for each in _NOT_GIVEN)


def parse_protected(paths: Sequence[str]) -> list[str]:
    """Return paths below a root in their normal form.

    Raises:
        ConfigError: for any others.
    """
    _check_list("protected", paths)
    normal = [os.path.normpath(each) for each in paths]
    for path, each in zip(paths, normal, strict=True):
        if each in (".", "..") or each.startswith(("../", "/")):
            raise ConfigError(f"protected must hold paths below root_dir, such as '.git/hooks', got {path!r}")
    return normal


def _check_list(name: str, paths: object) -> None:
    # One path alone would be taken for a list of its letters.
    if isinstance(paths, (str, Path)):
        raise ConfigError(f"{name} must be a list of paths, got {paths!r}; write [{paths!r}]")
