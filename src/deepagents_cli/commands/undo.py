"""Take back what the last task in a directory did: `deepagents undo`."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from deepagents_cli.commands.chat import add_place, add_work, opening_of
from deepagents_cli.commands.options import add_debug, ask, read_directory
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit, complain
from deepagents_cli.text import clean

with imported_when_run():
    import asyncio

    from deepagents import middleware
    from deepagents_cli.project import state
    from deepagents_cli.session import task
    from deepagents_cli.session.conversation import undo as session
    from deepagents_cli.session.threads import export, sessions
    from deepagents_cli.session.workplace import workplace

if TYPE_CHECKING:
    from deepagents_cli.session.conversation.undo import What

_NO_MODEL: Final = "Nothing is asked of a model while a session goes back"


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "undo",
        help="take back what the last task in a directory did",
        description="Take back the files and the conversation of the last task in a directory, after showing "
        "what will happen.",
    )
    parser.add_argument("--dir", type=Path, default=Path(), help="the directory (default: .)")
    add_agreement(parser)
    add_debug(parser)


def add_agreement(parser: argparse.ArgumentParser) -> None:
    """Let a person agree before they are asked, and name what may change besides the directory."""
    parser.add_argument(
        "--write",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="take files in this directory back too, if the agent could change it; may be repeated",
    )
    parser.add_argument("--yes", action="store_true", help="do it without asking")


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Take the last task back; return the exit code."""
    directory = read_directory(arguments.dir)
    store = sessions.Sessions(state.state_dir())
    with closing(export.MessageReader(store.path)) as reader:
        found = store.find_all(directory)
        last = next(
            (each for each in found if any(map(middleware.is_from_person, reader.read(each.id)))), None
        )
    if last is None:
        raise CommandError(f"there is nothing to take back: no task was done in {str(directory)!r}")
    if not last.directory.is_dir():
        raise CommandError(
            f"the last task was done in {str(last.directory)!r}, which is gone with what it changed; "
            "`deepagents sessions rewind SESSION` takes an earlier one back"
        )
    return go_back(last, None, "both", arguments.write, agreed=arguments.yes)


def list_messages(held: sessions.Session) -> None:
    """List the messages that a session can go back to, with what changed until the next."""
    with _opened(held) as (undo, wait):
        points = wait(undo.points())
        for point, count in zip(points, wait(undo.count(points)), strict=True):
            _say([f"{session.quote(point)} ({count})"])


def go_back(
    held: sessions.Session, number: str | None, what: What, write: Sequence[Path], *, agreed: bool
) -> int:
    """Go back to before a message, or before the last one, after showing the plan; return the exit code."""
    with _opened(held, write) as (undo, wait):
        point = wait(undo.find(number)) if number else wait(undo.points())[-1]
        plan = wait(undo.plan(point))
        # The last task may have been done in a worktree of the directory where a person is.
        where = f", in {str(held.directory)!r}" if held.branch else ""
        _say([f"Back to before message {session.quote(point)}{where}"])
        _say(session.describe_plan(plan, what, held.directory))
        if not (agreed or ask("Do it?")):
            _say(["Nothing has changed."])
            return Exit.FAILED
        _say(wait(undo.go_back(point, plan, what)))
        _say([f"To go forth again, type /redo in: deepagents --thread {quote(held.id)}"])
        return Exit.DONE


@contextmanager
def _opened(
    held: sessions.Session, write: Sequence[Path] = ()
) -> Generator[tuple[session.Undo, Callable[..., Any]]]:
    """Hold a session, with an agent that does nothing; yield what goes back in it, and what waits for it.

    Nothing runs while a person is asked, so Ctrl-C ends the command at once.
    """
    directory = read_directory(held.directory)
    with asyncio.Runner() as runner:
        place = workplace.Workplace(_open_alone(directory, write), complain, lambda: None)
        try:
            with place.sessions.hold(held.id):
                runner.run(place.open(workplace.NoModel(missing=_NO_MODEL)))
                opened = task.Task(place, held.id, [], lambda message: None, None)
                runner.run(opened.undo.settle())
                yield opened.undo, runner.run
        finally:
            runner.run(place.close())


def _open_alone(directory: Path, write: Sequence[Path]) -> Any:
    """Return what opens a directory without other options, and without servers."""
    parser = argparse.ArgumentParser()
    parser.set_defaults(yes=False)
    add_place(parser)
    add_work(parser)
    return opening_of(
        parser.parse_args(["--dir", str(directory), "--no-mcp", *(f"--write={each}" for each in write)])
    )


def _say(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{clean(line)}\n" for line in lines)
