"""`deepagents run`: let an agent work on a directory."""

from __future__ import annotations

import asyncio
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from deepagents.events import ApprovalGiven, Event, LimitReached, RunStarted
from deepagents_cli.agents import (
    Access,
    choose_backend,
    choose_model,
    expand_command,
    is_local,
    make_agent,
    model_label,
    reader,
    refuse_options,
)
from deepagents_cli.approval import GATED, GATED_IN_SANDBOX, AskPerson, approve, refuse
from deepagents_cli.args import FLAGS, command_flags, limits_of
from deepagents_cli.errors import CommandError, Exit, complain, exit_at_next_interrupt
from deepagents_cli.output import Printer, write_answer, write_json
from deepagents_cli.project import Project
from deepagents_cli.session import Show, converse, open_saver
from deepagents_cli.setup import Setup, describe_untrusted, load_setup
from deepagents_cli.task import read_task
from deepagents_cli.terminal import make_console
from deepagents_cli.threads import Threads, state_dir


class _Watch:
    """Shows events, and notes what decides about the exit code."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self.decisions = 0
        self.reached: LimitReached | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case ApprovalGiven():
                self.decisions += 1
            case LimitReached(agent=None):
                self.reached = event
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
    setup = _set_up(directory)
    chosen = model or choose_model(arguments.model, setup.settings)
    limits = limits_of(arguments, setup.settings.limits)
    refuse_options(chosen, approve_all=arguments.yes, for_commands=command_flags(arguments), limits=limits)
    access = Access.of(arguments, setup.settings)
    backend, confined, notice = choose_backend(setup.project, chosen, access)
    if notice:
        complain(notice)
    threads = Threads(state_dir())
    thread = threads.choose(directory, arguments.thread, latest=arguments.resume)
    resumed = arguments.resume or task is None
    again = "" if directory == Path.cwd() else f" --dir {shlex.quote(str(directory))}"
    again = f"Go on with: deepagents --continue{again}"
    with (
        threads.hold(thread),
        _open_output(as_json=arguments.json, quiet=arguments.quiet) as (show, end_line),
        asyncio.Runner() as runner,
        _saver(runner, threads.path) as saver,
        # A question to a person ends a run of the agent; what it started in the background goes on.
        backend if isinstance(backend, AbstractContextManager) else nullcontext(),
    ):
        threads.note(thread, directory, task or "")
        ask, watch = approve if arguments.yes else refuse, _Watch(show)
        asked_on = sys.stderr if arguments.json or arguments.quiet else sys.stdout
        # A question that no person sees, or that a pipe answers, is no approval.
        if ask is refuse and sys.stdin.isatty() and asked_on.isatty():
            ask = AskPerson(
                make_console(asked_on),
                reader(backend),
                end_line,
                one_by_one=is_local(chosen),
                directory=str(directory),
                confined=confined,
            )
        # What would leave the sandbox is asked about with `--auto` too.
        gated = GATED_IN_SANDBOX if confined and arguments.auto else GATED
        try:
            if task:
                task = runner.run(expand_command(task, setup, backend))
            started = RunStarted(thread, task, model_label(chosen), str(directory), resumed=resumed)
            agent = make_agent(chosen, backend, saver, limits, gated=gated, setup=setup)
            converse(runner, agent, started, ask=ask, show=watch)
        except KeyboardInterrupt:
            # Closing may wait for a request; a person who presses again wants to leave now.
            exit_at_next_interrupt()
            sys.stderr.write("\n")
            complain(f"stopped. {again}")
            raise
    return _report_end(watch, again, refusing=ask is refuse)


def _set_up(directory: Path) -> Setup:
    setup = load_setup(Project(directory, Path.home()))
    for notice in filter(None, [*setup.notices, describe_untrusted(setup)]):
        complain(notice)
    return setup


@contextmanager
def _open_output(*, as_json: bool, quiet: bool) -> Generator[tuple[Show, Callable[[], None]]]:
    """Yield what shows an event, and what ends the line that is being written."""
    if quiet:
        yield partial(write_answer, out=sys.stdout), lambda: None
        return
    if as_json:
        yield partial(write_json, out=sys.stdout), lambda: None
        return
    with closing(Printer(make_console(sys.stdout))) as printer:
        yield printer, printer.end_line


@contextmanager
def _saver(runner: asyncio.Runner, path: Path) -> Generator[AsyncSqliteSaver]:
    saver = runner.run(open_saver(path))
    try:
        yield saver
    finally:
        runner.run(saver.conn.close())


def _report_end(watch: _Watch, again: str, *, refusing: bool) -> int:
    """Say what the run did not do, and return its exit code."""
    if reached := watch.reached:
        flag = FLAGS[reached.kind]
        complain(f'stopped at {flag} {reached.limit:g}, with the work not finished. {again} "Go on."')
        return Exit.LIMITED
    if refusing and watch.decisions:
        calls = "1 call was" if watch.decisions == 1 else f"{watch.decisions} calls were"
        complain(f"{calls} refused: there is no terminal to ask for approval; allow changes with --yes")
        return Exit.REFUSED
    return Exit.DONE
