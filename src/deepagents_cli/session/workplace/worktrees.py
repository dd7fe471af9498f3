"""Find the directory that a session works in: the one that was named, or a worktree of its repository."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from deepagents._values import replace, valueclass
from deepagents_cli.errors import CommandError
from deepagents_cli.project.state import state_dir
from deepagents_cli.project.worktrees import (
    Contents,
    find_worktree,
    has_branch,
    look_into,
    make_worktree,
    remove_worktree,
)
from deepagents_cli.protocol import Open
from deepagents_cli.session.threads.sessions import Session, Sessions, new_thread_id


def settle_place(opening: Open) -> tuple[Open, str]:
    """Return what is opened, with the worktree as its directory where it is in one; and what is new.

    Raises:
        CommandError: for a worktree that cannot be made or found again.
    """
    wanted: str | None = opening.options.get("worktree")
    directory = Path(opening.directory).expanduser().resolve()
    if wanted is None and not (opening.thread or opening.resume):
        return opening, ""
    sessions = Sessions(state_dir())
    if wanted is not None and not opening.resume:
        thread = opening.thread or new_thread_id()
        place, notice = begin_worktree(sessions, directory, thread, wanted)
        return replace(opening, directory=str(place), thread=thread), notice
    known = sessions.find_all(directory)
    if wanted:
        known = [each for each in known if each.branch == wanted]
        if not known:
            raise CommandError(f"no session of {str(directory)!r} has the worktree {wanted!r}")
    if opening.thread:
        wanted_thread = opening.thread
        by_id = [each for each in known if each.id == wanted_thread]
        known = by_id or [each for each in known if each.name == wanted_thread]
        known = known if len(known) == 1 else []
    if not known or not known[0].branch:
        return opening, ""
    place, notice = return_to(sessions, known[0])
    return replace(opening, directory=str(place), thread=known[0].id), notice


def begin_worktree(sessions: Sessions, directory: Path, thread: str, name: str) -> tuple[Path, str]:
    """Make or find the worktree of this name, else of the thread's, and note that the thread works there."""
    known = sessions.find_origin(directory)
    place, notice = make_worktree(directory, name or thread)
    sessions.note_worktree(place, known[0] if known else directory, name or thread)
    sessions.note(thread, place, name)
    return place, notice


def return_to(sessions: Sessions, session: Session) -> tuple[Path, str]:
    """Return the directory that a session works in; its worktree is made again where it was removed.

    Where its branch is gone too, the session goes on where the worktree was asked for.
    """
    if session.origin is None or session.directory.is_dir():
        return session.directory, ""
    if not session.origin.is_dir():
        raise CommandError(
            f"The worktree {str(session.directory)!r} is gone, and {str(session.origin)!r} too"
        )
    if not has_branch(session.origin, session.branch):
        sessions.forget_worktree(session.directory)
        return session.origin, f"its worktree is gone with its branch, so it goes on in {session.origin}"
    place, notice = make_worktree(session.origin, session.branch)
    return place, f"made again: {notice}"


@valueclass
class Left:
    """A worktree at the end of a session: where it is, where it was asked for, and what it holds."""

    directory: Path
    main: Path
    path: Path
    held: Contents


def look_at_end(directory: Path) -> Left | None:
    """Return what the worktree that was made for a directory holds; `None` where none was."""
    found = find_worktree(directory)
    if found is None or Sessions(state_dir()).find_origin(directory) is None:
        return None
    return Left(directory, found.main, found.path, look_into(found))


def remove(left: Left, *, with_changes: bool) -> bool:
    """Remove a worktree in which no process works; return whether its branch went too, which held nothing.

    Raises:
        CommandError: where another process works in it, or git refuses.
    """
    sessions = Sessions(state_dir())
    found = find_worktree(left.directory)
    if found is None:
        raise CommandError(f"{str(left.path)!r} is not a worktree any more")
    with ExitStack() as held:
        # Also those of other directories in it.
        for each in sessions.find_all():
            if each.directory.is_relative_to(found.path):
                held.enter_context(sessions.hold(each.id))
        branch_gone = remove_worktree(found, left.held, with_changes=with_changes)
        if branch_gone:
            sessions.forget_worktree(left.directory)
    return branch_gone
