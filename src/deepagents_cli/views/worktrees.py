"""Say at the end of a session what its worktree holds, and ask whether it stays."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from deepagents_cli.errors import CommandError, complain
from deepagents_cli.session.workplace.worktrees import Left, look_at_end, remove
from deepagents_cli.terminal import put_back, take_typed_ahead

_MOST_LINES: Final = 20
_YES: Final = "yes"


def leave_worktree(directory: Path, *, asks: bool) -> None:
    """Show what the worktree of a session holds and how it is merged; remove it where the person says so.

    It stays by itself, and what it alone holds is removed after a written yes. Without a terminal nothing is
    asked.
    """
    try:
        left = look_at_end(directory)
        if left is None:
            return
        for line in _describe(left):
            sys.stderr.write(f"{line}\n")
        if asks and sys.stdin.isatty() and sys.stderr.isatty():
            # A conversation leaves the terminal raw until the process ends.
            put_back(sys.stdin.fileno())
            # What was typed before the question could be read does not answer it.
            take_typed_ahead()
            _ask(left)
    except CommandError as error:
        complain(str(error))


def _describe(left: Left) -> Iterator[str]:
    held, main = left.held, quote(str(left.main))
    yield f"Worktree {left.path}, {f'branch {held.branch}' if held.branch else 'on no branch'}:"
    if not (held.files or held.commits):
        yield "  nothing that is not elsewhere too"
    yield from _list("commit", held.commits)
    yield from _list("file in no commit", held.files, "files in no commit")
    if held.files:
        yield f"Commit:  git -C {quote(str(left.path))} add -A && git -C {quote(str(left.path))} commit"
    if held.branch and (held.files or held.commits):
        yield f"Merge:   git -C {main} merge {quote(held.branch)}"
    if held.commits and not held.branch:
        yield f"Name it: git -C {quote(str(left.path))} switch -c NAME"
    yield f"Remove:  git -C {main} worktree remove {quote(str(left.path))}"


def _list(one: str, lines: Sequence[str], many: str = "") -> Iterator[str]:
    if lines:
        yield f"  {len(lines):,} {one if len(lines) == 1 else many or f'{one}s'}:"
        yield from (f"    {each}" for each in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"    and {len(lines) - _MOST_LINES:,} more"


def _ask(left: Left) -> None:
    held = left.held
    if _read("Keep the worktree? [K]eep, [r]emove: ").lower() not in ("r", "remove"):
        return
    lost = [f"{len(held.files):,} files that are in no commit"] * bool(held.files)
    lost += [f"{len(held.ignored):,} that git ignores"] * bool(held.ignored)
    # A branch outlives its worktree; commits on none do not.
    lost += [f"{len(held.commits):,} commits on no branch"] * bool(held.commits and not held.branch)
    warned = [f"this loses {', '.join(lost)}"] * bool(lost)
    warned += [f"{len(held.commits):,} commits are not merged, and stay on branch {held.branch}"] * bool(
        held.commits and held.branch
    )
    if warned and _read(f"{'; '.join(warned).capitalize()}. Write {_YES} to remove it: ").lower() != _YES:
        sys.stderr.write(f"Kept: {left.path}\n")
        return
    branch_gone = remove(left, with_changes=bool(held.files))
    kept = "" if branch_gone or not held.branch else f"; its branch {held.branch} is kept"
    sys.stderr.write(f"Removed: {left.path}{kept}\n")


def _read(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    try:
        return sys.stdin.readline().strip()
    except (KeyboardInterrupt, OSError):
        sys.stderr.write("\n")
        return ""
