"""Make git worktrees, find what they hold, and remove them.

A worktree lies next to its repository, at the same depth: what the project names by a relative path, such as
`../library`, is there too, and neither its tools nor an agent that works on the main tree look into it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Final

from deepagents._programs import find_program
from deepagents._values import valueclass
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.text import one_line

_SECONDS: Final = 600
"""A checkout of a large repository takes minutes on a slow disk."""
_LONGEST_POINTER: Final = 4_096
_OWN_SCOPES: Final = ("local", "worktree")


@valueclass
class Worktree:
    """A linked worktree: its directory, the repository that it belongs to, and its own part of that.

    `repository` is the directory `.git` of the main tree, and `git` one below its `worktrees`.
    """

    path: Path
    repository: Path
    git: Path

    @property
    def main(self) -> Path:
        """The main tree."""
        return self.repository.parent


@valueclass
class Contents:
    """What a worktree holds of its own: files that are in no commit, and commits that no other branch has.

    `files` are named as git names them, with what is done to each; `ignored` are those that git ignores.
    """

    branch: str
    files: Sequence[str]
    ignored: Sequence[str]
    commits: Sequence[str]


def find_worktree(directory: Path) -> Worktree | None:
    """Return the linked worktree that a directory lies in, where it and its repository name each other.

    No program runs, and a file `.git` alone proves nothing: anybody can write one, but not the repository.
    """
    above = (directory, *directory.parents)
    path = next((each for each in above if os.path.lexists(each / ".git")), None)
    if path is None or not (named := _read(path / ".git").removeprefix("gitdir:").strip()):
        return None
    git = Path(os.path.realpath(path / named))
    repository = Path(os.path.realpath(git / _read(git / "commondir")))
    back = _read(git / "gitdir")
    linked = git.parent == repository / "worktrees" and os.path.realpath(git / back) == os.path.realpath(
        path / ".git"
    )
    # A repository of another name would not be known as one by the rules about `.git`.
    whole = repository.name == ".git" and all((repository / each).exists() for each in ("HEAD", "objects"))
    return Worktree(path, repository, git) if back and linked and whole else None


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return os.fsdecode(file.read(_LONGEST_POINTER)).rstrip("\n").replace("\0", "")
    except OSError:
        return ""


def make_worktree(directory: Path, name: str) -> tuple[Path, str]:
    """Make a worktree with a branch of this name, or find the one that is there.

    Return where the directory is in it, and what a person must know of it, if it is new.

    Raises:
        CommandError: where there is no repository, or git refuses.
    """
    top, prefix = _find_top(directory)
    linked = find_worktree(top)
    main = linked.main if linked else top
    if _ask(top, "check-ref-format", "--branch", name).returncode:
        raise CommandError(
            f"{name!r} is not a name for a branch; write one without blanks, such as --worktree=fix-login",
            Exit.USAGE,
        )
    path = main.parent / f"{main.name}.{name.replace('/', '-')}"
    if _is_there(path, main, name):
        return _inside(path, prefix), ""
    if os.path.lexists(path):
        raise CommandError(
            f"{str(path)!r} is there and not on a branch {name!r} of this repository; choose another "
            f"name, or work in it: --dir {quote(str(path))}"
        )
    known = not _ask(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}").returncode
    begun = _tell(top, "rev-parse", "--verify", "--short", name if known else "HEAD^{commit}")
    # One whose directory was removed by hand is still in git's list; else -f would take a branch twice.
    listed = (_read(each) for each in (main / ".git/worktrees").glob("*/gitdir"))
    force = ["-f"] if f"{path}/.git" in listed else []
    branch = [str(path), name] if known else ["-b", name, str(path), "HEAD"]
    done = _ask(top, "worktree", "add", *force, "--quiet", *branch)
    if done.returncode:
        raise CommandError(f"git makes no worktree: {_reason(done)}")
    left = _count_changes(top)
    stay = f"; {left} of {top} are not in it" if left else ""
    return _inside(path, prefix), f"worktree {path}, branch {name}, from commit {begun.strip()}{stay}"


def _is_there(path: Path, main: Path, name: str) -> bool:
    found = find_worktree(path)
    is_ours = found is not None and found.path == path and found.main.resolve() == main.resolve()
    return found is not None and is_ours and branch_of(found) == name


def _inside(path: Path, prefix: str) -> Path:
    # What is in no commit is not in the worktree.
    place = path / prefix
    return place if place.is_dir() else path


def _count_changes(top: Path) -> str:
    lines = _lines(_ask(top, *_STATUS, "--ignore-submodules=all").stdout)
    untracked = sum(each.startswith("??") for each in lines)
    changed = len(lines) - untracked
    parts = [f"{changed:,} changed"] * bool(changed) + [f"{untracked:,} untracked"] * bool(untracked)
    return f"{' and '.join(parts)} file{'s' if len(lines) > 1 else ''}" if parts else ""


_STATUS: Final = ("status", "--porcelain", "--untracked-files=all", "-z", "--no-renames")


def look_into(worktree: Worktree) -> Contents:
    """Return what a worktree holds that is nowhere else.

    Raises:
        CommandError: where git cannot tell.
    """
    branch = branch_of(worktree)
    # Not as its file `.git` says, which may have been changed since.
    tell = partial(_tell, worktree.path, git=worktree.git)
    # Nothing is looked at in submodules, whose configuration names programs too; git removes none of those.
    entries = _lines(tell(*_STATUS, "--ignored", "--ignore-submodules=dirty"))
    exclude = [f"--exclude={branch}"] if branch else []
    others = ["--not", *exclude, "--branches", "--remotes", "--tags"]
    commits = tell("log", "--format=%h %s", "HEAD", *others).splitlines()
    return Contents(
        branch,
        [one_line(each) for each in entries if not each.startswith("!!")],
        [one_line(each[3:]) for each in entries if each.startswith("!!")],
        [one_line(each) for each in commits],
    )


def remove_worktree(worktree: Worktree, held: Contents, *, with_changes: bool) -> bool:
    """Remove a worktree, and its branch if that has nothing of its own; return whether the branch is gone.

    Raises:
        CommandError: where git refuses; without `with_changes`, also where there are changes by now.
    """
    force = ["--force"] if with_changes else []
    done = _ask(worktree.main, "worktree", "remove", *force, str(worktree.path))
    if done.returncode:
        raise CommandError(f"the worktree is kept: {_reason(done)}")
    if held.commits or not held.branch:
        return False
    # Git keeps it where it has commits that are in no other branch by now.
    return not _ask(worktree.main, "branch", "--quiet", "--delete", held.branch).returncode


def list_files(directory: Path) -> list[str]:
    """Return the files of a directory that git tracks or would track; nothing without a repository.

    Raises:
        OSError: where git cannot tell.
    """
    if not any(os.path.lexists(each / ".git") for each in (directory, *directory.parents)):
        return []
    found = _ask(directory, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    if found.returncode:
        raise OSError(f"git cannot list its files: {found.stderr.strip()}")
    listed = _lines(found.stdout)
    # A submodule is one entry, and what was removed is still in the index.
    return [each for each in listed if (directory / each).is_symlink() or (directory / each).is_file()]


def list_ignored(directory: Path, paths: Sequence[str]) -> set[str]:
    """Return which of these paths git ignores in a directory; none where it is in no repository."""
    if not paths or not any(os.path.lexists(each / ".git") for each in (directory, *directory.parents)):
        return set()
    given = "".join(f"{each}\0" for each in paths)
    return {*_lines(_ask(directory, "check-ignore", "-z", "--stdin", given=given).stdout)}


def branch_of(worktree: Worktree) -> str:
    """Return the branch of a worktree, `""` on none."""
    kind, colon, name = _read(worktree.git / "HEAD").partition("ref: refs/heads/")
    return name if colon and not kind else ""


def has_branch(main: Path, name: str) -> bool:
    """Return whether a repository has a branch."""
    return not _ask(main, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}").returncode


def _find_top(directory: Path) -> tuple[Path, str]:
    found = _ask(directory, "rev-parse", "--show-toplevel", "--show-prefix")
    if found.returncode:
        raise CommandError(
            f"{str(directory)!r} is in no git repository, and only such a one has worktrees: make it "
            "one (git init, git add, git commit), or work without --worktree"
        )
    if _ask(directory, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode:
        raise CommandError(
            f"{str(directory)!r} has no commit yet that a worktree could begin with: git commit makes one"
        )
    top, _, prefix = found.stdout.rstrip("\n").partition("\n")
    return Path(top), prefix


def _tell(place: Path, *arguments: str, git: Path | None = None) -> str:
    done = _ask(place, *arguments, git=git)
    if done.returncode:
        raise CommandError(f"git cannot tell: {_reason(done)}")
    return done.stdout


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
    return one_line(lines[-1].removeprefix("fatal: "))


def _lines(status: str) -> list[str]:
    return [each for each in status.split("\0") if each]


def _ask(
    place: Path, *arguments: str, git: Path | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run git outside of the sandbox, without the programs that the configuration of a repository names.

    Those of the person's own configuration run, such as the filter of git-lfs.
    """
    changeable = [place, *([git] if git else [])]
    program = find_program("git", changeable)
    if program is None:
        raise CommandError("git is not installed, and worktrees need it")
    where = [f"--git-dir={git}", f"--work-tree={place}"] if git else []
    listed = _run(
        program, place, where, ("config", "--show-scope", "--name-only", "--get-regexp", "^filter[.]"), []
    )
    own = [each.split("\t", 1) for each in listed.stdout.splitlines() if "\t" in each]
    off = [(key, "false" if key.endswith(".required") else "") for scope, key in own if scope in _OWN_SCOPES]
    return _run(program, place, where, arguments, off, given)


def _run(
    program: str,
    place: Path,
    where: Sequence[str],
    arguments: Sequence[str],
    off: Sequence[tuple[str, str]],
    given: str = "",
) -> subprocess.CompletedProcess[str]:
    settings = [("core.hooksPath", os.devnull), ("core.fsmonitor", "false"), *off]
    kept = {each: os.environ[each] for each in ("HOME", "XDG_CONFIG_HOME") if each in os.environ}
    below = os.path.realpath(place)
    paths = [
        each
        for each in os.get_exec_path()
        if Path(each).is_absolute() and not Path(os.path.realpath(each)).is_relative_to(below)
    ]
    environment = {
        **kept,
        "PATH": os.pathsep.join(paths),
        "LC_ALL": "C.UTF-8",
        # A look changes nothing, and nothing is fetched by what a repository names.
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    try:
        return subprocess.run(
            (program, *where, *arguments),
            cwd=place, env=environment, timeout=_SECONDS, check=False, text=True,
            encoding="utf-8", errors="surrogateescape",
            input=given, capture_output=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"git does not run: {error}") from error
