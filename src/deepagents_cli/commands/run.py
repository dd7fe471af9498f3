"""Let an agent work on a directory: `deepagents run`."""

from __future__ import annotations

import argparse
import logging
import select
import shlex
import sys
from argparse import Namespace
from collections.abc import Coroutine
from functools import partial
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from deepagents_cli.commands.chat import add_place, add_work, opening_of
from deepagents_cli.commands.options import read_directory
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit, complain
from deepagents_cli.session.agent.access import FLAGS

with imported_when_run():
    import asyncio

    from deepagents.models import endings
    from deepagents_cli import imports, protocol
    from deepagents_cli.session import task as session
    from deepagents_cli.session.agent import agents, schema
    from deepagents_cli.session.threads import usage
    from deepagents_cli.session.workplace import workplace, worktrees
    from deepagents_cli.views import task as views
    from deepagents_cli.views import worktrees as leaving

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_MOST_CHARACTERS: Final = 1_000_000
_SECONDS: Final = 3.0


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "run",
        help="let an agent work on a directory",
        description="Let an agent work on a directory. It reads freely and asks before it changes anything.",
    )
    parser.add_argument("task", nargs="*", metavar="TASK", help="what to do; or on standard input")
    add_own_options(parser)


def add_own_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options of a task; they stand behind `deepagents run`, or `deepagents` alone."""
    add_place(parser)
    parser.add_argument(
        "--yes",
        action="store_true",
        help="approve every call without asking, but those about .git, secrets and settings of editors",
    )
    written = parser.add_mutually_exclusive_group()
    written.add_argument("--json", action="store_true", help="write events as JSON, one object a line")
    written.add_argument("-q", "--quiet", action="store_true", help="write the answer alone")
    parser.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="a JSON Schema that the answer fits; it is written as JSON",
    )
    add_work(parser)


def run(arguments: Namespace, *, model: BaseChatModel | None = None) -> int:
    """Run a task in a session, new or taken up; return the exit code."""
    directory = read_directory(arguments.dir)
    text = _read_task(arguments.task, sys.stdin)
    if not (text or arguments.resume or arguments.thread):
        sentence = 'a task is needed: deepagents "TASK" (--continue takes up the last session)'
        raise CommandError(sentence, Exit.USAGE)
    wanted = schema.read_schema(arguments.schema)
    # What fails is raised, and is not a line of a log.
    logging.getLogger("deepagents_cli.session").addHandler(logging.NullHandler())
    form = "json" if arguments.json else "answer" if arguments.quiet else "text"
    view = views.TaskView(form, directory, arguments.write, wanted)
    again = "" if directory == Path.cwd() else f" --dir {shlex.quote(str(directory))}"
    again = f"Go on with: deepagents --continue{again}"
    asyncio.run(_work(view, arguments, text, again, wanted=wanted, model=model))
    return Exit.STOPPED if view.stopped else _report_end(view, again, arguments)


async def _work(
    view: views.TaskView,
    arguments: Namespace,
    text: str | None,
    again: str,
    *,
    wanted: dict[str, Any] | None,
    model: BaseChatModel | None,
) -> None:
    """Hold the session in this process until the view has seen its first turn."""
    opening, notice = worktrees.settle_place(opening_of(arguments))
    place = workplace.Workplace(opening, lambda notice: view.take(protocol.Notice(notice)), lambda: None)
    if notice:
        place.notify(notice)
    try:
        with imports.importing_much():
            chosen = model or agents.choose_model(arguments.model, place.setup.settings)
        await place.open(chosen)
        thread = place.sessions.choose(place.directory, opening.thread, latest=opening.resume)
        with place.sessions.hold(thread):
            await place.recall_effort(thread)
            task = session.Task(place, thread, await place.record.texts(thread), view.take, wanted)
            resumed, own = arguments.resume or text is None, model or arguments.model
            await _show(view, task, task.carry_out(text, resumed=resumed, with_model=not own), again)
    finally:
        await place.close()
        view.finish(partial(usage.describe_calls, place.usage.calls))
    is_shown = not (arguments.json or arguments.quiet or view.stopped)
    leaving.leave_worktree(place.directory, asks=is_shown and sys.stdin.isatty())
    if task.failure:
        raise task.failure


async def _show(
    view: views.TaskView, task: session.Task, beginning: Coroutine[Any, Any, None], again: str
) -> None:
    with view.attached(task.take) as over:
        begun = asyncio.create_task(beginning)
        begun.add_done_callback(view.note_end)
        try:
            await over
        finally:
            begun.cancel()
            if view.stopped:
                sys.stderr.write("\n")
                complain(f"stopped. {again}")
            await task.turns.end()


def _report_end(view: views.TaskView, again: str, arguments: Namespace) -> int:
    """Say what the run did not do, and return its exit code."""
    if reached := view.reached:
        flag = FLAGS[reached.kind]
        complain(f'stopped at {flag} {reached.limit:g}, with the work not finished. {again} "Go on."')
        return Exit.LIMITED
    if view.broken:
        raise CommandError(f'the answer {endings.describe_break(view.broken)}. {again} "Go on."')
    if view.refused:
        calls = "1 call was" if view.refused == 1 else f"{view.refused} calls were"
        way = "--mode full lets secrets and .git through too" if arguments.yes else "allow changes with --yes"
        complain(f"{calls} refused: there is no terminal to ask for approval; {way}")
        return Exit.REFUSED
    if arguments.schema and view.structured is None:
        raise CommandError(f"the model gave no answer that fits {arguments.schema}")
    return Exit.DONE


def _read_task(typed: str | None, given: IO[str] | None) -> str | None:
    """Return the task followed by what standard input holds, or that alone; `None` when there is neither.

    Raises:
        CommandError: for input that is not text, or more than a model could read.
    """
    _check_text("the task", typed or "")
    context = _read_context(given, has_task=typed is not None)
    if not context.strip():
        return typed
    return f"{typed}\n\n<stdin>\n{context.rstrip()}\n</stdin>" if typed else context.strip()


def _read_context(given: IO[str] | None, *, has_task: bool) -> str:
    if given is None or given.closed or given.isatty():
        return ""
    if has_task and _is_silent(given):
        # Not left out: what is piped in may take a while, and an answer without it would be wrong.
        complain("waiting for the end of standard input; where nothing comes, add < /dev/null")
    try:
        context = given.read(_MOST_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise CommandError(f"standard input holds no text: {error}", Exit.USAGE) from error
    _check_text("standard input", context)
    if len(context) > _MOST_CHARACTERS:
        raise CommandError(
            f"standard input holds over {_MOST_CHARACTERS:,} characters; put it into a file, and name that",
            Exit.USAGE,
        )
    return context


def _check_text(what: str, text: str) -> None:
    # Where no language is set, Python hides bytes that are none of UTF-8 in half characters.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CommandError(f"{what} holds no text: {error}", Exit.USAGE) from error


def _is_silent(given: IO[str]) -> bool:
    if sys.platform == "win32":
        return False
    try:
        return not select.select([given], [], [], _SECONDS)[0]
    except (UnsupportedOperation, ValueError):
        return False
