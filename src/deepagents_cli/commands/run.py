"""Let an agent work on a directory: `deepagents run`."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from deepagents.errors import UnknownModel
from deepagents.events import Event, FinalAnswer, LimitReached, RunStarted
from deepagents.models.endings import describe_break
from deepagents_cli.approval.policy import Policy
from deepagents_cli.approval.verdicts import PLANNING
from deepagents_cli.commands.task import read_task
from deepagents_cli.errors import CommandError, Exit, complain, exit_at_next_interrupt
from deepagents_cli.project.agents import choose_other_model
from deepagents_cli.project.project import Project
from deepagents_cli.project.setup import Setup, describe_untrusted, load_setup
from deepagents_cli.project.state import state_dir
from deepagents_cli.session.access import FLAGS, Access, limits_of
from deepagents_cli.session.agents import (
    choose_backend,
    choose_model,
    expand_command,
    find_command,
    make_agent,
    make_policy,
    model_label,
    refuse_options,
)
from deepagents_cli.session.schema import fits, read_schema
from deepagents_cli.session.session import Ask, Show, converse, open_saver
from deepagents_cli.session.threads import Threads
from deepagents_cli.session.usage import Spending
from deepagents_cli.terminal import make_console
from deepagents_cli.views.ask_person import AskPerson, Unattended
from deepagents_cli.views.editor import find_editor
from deepagents_cli.views.printer import write_answer, write_json
from deepagents_cli.views.terminal_printer import make_printer


class _Watch:
    """Shows events, and notes what decides about the exit code."""

    def __init__(self, show: Show, schema: dict[str, Any] | None = None) -> None:
        self._show = show
        self._schema = schema
        self.structured: Any = None
        self.reached: LimitReached | None = None
        self.broken: str | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, FinalAnswer):
            self.broken = event.broken
        match event:
            case LimitReached(agent=None):
                self.reached = event
            case FinalAnswer() if self._schema:
                # A program that reads this output is never given another form.
                if not fits(event.structured, self._schema):
                    return
                self.structured = event.structured
                event = replace(event, text=json.dumps(self.structured, ensure_ascii=False))
            case _:
                pass
        self._show(event)


def run(arguments: Namespace, *, model: BaseChatModel | None = None) -> int:
    """Run, or take up, a thread; return the exit code."""
    directory: Path = arguments.dir.expanduser().resolve()
    if not directory.is_dir():
        raise CommandError(f"{str(arguments.dir)!r} is not a directory")
    task = read_task(arguments.task, sys.stdin)
    if not (task or arguments.resume or arguments.thread):
        sentence = 'a task is needed: deepagents "TASK" (--continue takes up the last thread)'
        raise CommandError(sentence, Exit.USAGE)
    schema, setup = read_schema(arguments.schema), _set_up(directory)
    chosen = model or _choose_model(arguments.model, task or "", setup)
    limits = limits_of(arguments, setup.settings.limits)
    access = Access.of(arguments, setup.settings)
    refuse_options(chosen, approve_all=access.approving, for_commands=access.typed, limits=limits)
    backend, notice = choose_backend(setup.project, chosen, access)
    if notice:
        complain(notice)
    threads = Threads(state_dir())
    thread = threads.choose(directory, arguments.thread, latest=arguments.resume)
    resumed = arguments.resume or task is None
    again = "" if directory == Path.cwd() else f" --dir {shlex.quote(str(directory))}"
    again, spending = f"Go on with: deepagents --continue{again}", Spending(chosen)
    with (
        threads.hold(thread),
        _open_output(arguments, spending, setup.settings.theme) as (show, end_line),
        asyncio.Runner() as runner,
        _saver(runner, threads.path) as saver,
        # A question to a person ends a run of the agent; what it started in the background goes on.
        backend if isinstance(backend, AbstractContextManager) else nullcontext(),
    ):
        threads.note(thread, directory, task or "")
        policy = make_policy(backend, setup.project, access, chosen, yes=arguments.yes)
        command, _ = find_command(task or "", setup)
        policy.grant(command.rules(directory) if command else ())
        unattended, watch = Unattended(policy), _Watch(show, schema)
        ask = spending.without_waiting(
            _find_person(arguments, policy, end_line, setup.settings.editor) or unattended
        )
        try:
            if task:
                task = runner.run(expand_command(task, setup, policy))
            started = RunStarted(thread, task, model_label(chosen), str(directory), resumed=resumed)
            instructions = {"plan": f"{PLANNING} Your answer is the plan."}.get(access.mode, "")
            agent = make_agent(
                chosen,
                saver,
                policy,
                limits,
                setup=setup,
                instructions=instructions,
                schema=schema,
                notify=partial(_notify, end_line),
            )
            converse(runner, agent, started, ask=ask, show=watch)
        except KeyboardInterrupt:
            # Closing may wait for a request; a person who presses again wants to leave now.
            exit_at_next_interrupt()
            sys.stderr.write("\n")
            complain(f"stopped. {again}")
            raise
    return _report_end(watch, again, unattended.refused, arguments)


def _choose_model(named: str | None, task: str, setup: Setup) -> BaseChatModel:
    """Make the model that was named, or that of the command from a file with which a task begins."""
    chosen = choose_model(named, setup.settings)
    command, _ = find_command(task, setup)
    if named or command is None or command.model is None:
        return chosen
    try:
        return choose_other_model(command.model, chosen) or chosen
    except UnknownModel as error:
        complain(f"{model_label(chosen)} answers: {error}")
        return chosen


def _notify(end_line: Callable[[], None], text: str) -> None:
    """Write what a hook has to say below the line that is being written."""
    end_line()
    complain(text)


def _find_person(
    arguments: Namespace, policy: Policy, end_line: Callable[[], None], editor: str | None
) -> Ask | None:
    asked_on = sys.stderr if arguments.json or arguments.quiet else sys.stdout
    # A question that no person sees, or that a pipe answers, is no approval.
    if not (sys.stdin.isatty() and asked_on.isatty()):
        return None
    return AskPerson(make_console(asked_on), policy, end_line, find_editor(editor))


def _set_up(directory: Path) -> Setup:
    setup = load_setup(Project(directory, Path.home()))
    for notice in filter(None, [*setup.notices, describe_untrusted(setup)]):
        complain(notice)
    return setup


@contextmanager
def _open_output(
    arguments: Namespace, spending: Spending, theme: str
) -> Generator[tuple[Show, Callable[[], None]]]:
    """Yield what shows an event, and what ends the line that is being written."""
    if arguments.quiet:
        yield partial(write_answer, out=sys.stdout), lambda: None
        return
    if arguments.json:
        yield partial(write_json, out=sys.stdout), lambda: None
        return
    # An answer that fits a schema is JSON, whose characters are no marks of Markdown.
    printer = make_printer(make_console(sys.stdout), spending, theme, plain=bool(arguments.schema))
    with closing(printer):
        yield printer, printer.end_line


@contextmanager
def _saver(runner: asyncio.Runner, path: Path) -> Generator[AsyncSqliteSaver]:
    saver = runner.run(open_saver(path))
    try:
        yield saver
    finally:
        runner.run(saver.conn.close())


def _report_end(watch: _Watch, again: str, refused: int, arguments: Namespace) -> int:
    """Say what the run did not do, and return its exit code."""
    if reached := watch.reached:
        flag = FLAGS[reached.kind]
        complain(f'stopped at {flag} {reached.limit:g}, with the work not finished. {again} "Go on."')
        return Exit.LIMITED
    if watch.broken:
        raise CommandError(f'the answer {describe_break(watch.broken)}. {again} "Go on."')
    if refused:
        calls = "1 call was" if refused == 1 else f"{refused} calls were"
        way = "--mode full lets secrets and .git through too" if arguments.yes else "allow changes with --yes"
        complain(f"{calls} refused: there is no terminal to ask for approval; {way}")
        return Exit.REFUSED
    if arguments.schema and watch.structured is None:
        raise CommandError(f"the model gave no answer that fits {arguments.schema}")
    return Exit.DONE
