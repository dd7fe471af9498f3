"""Let an agent work on a directory: `deepagents run`."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
from argparse import Namespace
from asyncio import create_task
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from deepagents.models.endings import describe_break
from deepagents_cli.commands.chat import opening_of
from deepagents_cli.commands.task import read_task
from deepagents_cli.errors import CommandError, Exit, complain
from deepagents_cli.protocol import Notice
from deepagents_cli.session.access import FLAGS
from deepagents_cli.session.agents import choose_model
from deepagents_cli.session.schema import read_schema
from deepagents_cli.session.task import Task
from deepagents_cli.session.usage import describe_calls
from deepagents_cli.session.workplace import Workplace
from deepagents_cli.views.task import TaskView


def run(arguments: Namespace, *, model: BaseChatModel | None = None) -> int:
    """Run, or take up, a thread; return the exit code."""
    directory: Path = arguments.dir.expanduser().resolve()
    if not directory.is_dir():
        raise CommandError(f"{str(arguments.dir)!r} is not a directory")
    text = read_task(arguments.task, sys.stdin)
    if not (text or arguments.resume or arguments.thread):
        sentence = 'a task is needed: deepagents "TASK" (--continue takes up the last thread)'
        raise CommandError(sentence, Exit.USAGE)
    schema = read_schema(arguments.schema)
    # What fails is raised, and is no line of a log.
    logging.getLogger("deepagents_cli.session").addHandler(logging.NullHandler())
    form = "json" if arguments.json else "answer" if arguments.quiet else "text"
    view = TaskView(form, directory, arguments.write, schema)
    again = "" if directory == Path.cwd() else f" --dir {shlex.quote(str(directory))}"
    again = f"Go on with: deepagents --continue{again}"
    asyncio.run(_work(view, arguments, text, again, schema=schema, model=model))
    return Exit.STOPPED if view.stopped else _report_end(view, again, arguments)


async def _work(
    view: TaskView,
    arguments: Namespace,
    text: str | None,
    again: str,
    *,
    schema: dict[str, Any] | None,
    model: BaseChatModel | None,
) -> None:
    """Hold the session in this process until the view has seen its first turn."""
    place = Workplace(opening_of(arguments), lambda notice: view.take(Notice(notice)), lambda: None)
    try:
        await place.open(model or choose_model(arguments.model, place.setup.settings))
        thread = place.threads.choose(place.directory, arguments.thread, latest=arguments.resume)
        with place.threads.hold(thread):
            task = Task(place, thread, await place.record.texts(thread), view.take, schema)
            resumed, own = arguments.resume or text is None, model or arguments.model
            await _show(view, task, task.carry_out(text, resumed=resumed, with_model=not own), again)
    finally:
        await place.close()
        view.finish(partial(describe_calls, place.usage.calls))
    if task.failure:
        raise task.failure


async def _show(view: TaskView, task: Task, beginning: Coroutine[Any, Any, None], again: str) -> None:
    with view.attached(task.take) as over:
        begun = create_task(beginning)
        begun.add_done_callback(view.note_end)
        try:
            await over
        finally:
            begun.cancel()
            if view.stopped:
                sys.stderr.write("\n")
                complain(f"stopped. {again}")
            await task.turns.end()


def _report_end(view: TaskView, again: str, arguments: Namespace) -> int:
    """Say what the run did not do, and return its exit code."""
    if reached := view.reached:
        flag = FLAGS[reached.kind]
        complain(f'stopped at {flag} {reached.limit:g}, with the work not finished. {again} "Go on."')
        return Exit.LIMITED
    if view.broken:
        raise CommandError(f'the answer {describe_break(view.broken)}. {again} "Go on."')
    if view.refused:
        calls = "1 call was" if view.refused == 1 else f"{view.refused} calls were"
        way = "--mode full lets secrets and .git through too" if arguments.yes else "allow changes with --yes"
        complain(f"{calls} refused: there is no terminal to ask for approval; {way}")
        return Exit.REFUSED
    if arguments.schema and view.structured is None:
        raise CommandError(f"the model gave no answer that fits {arguments.schema}")
    return Exit.DONE
