"""`deepagents run`: let an agent work on a directory."""

from __future__ import annotations

import asyncio
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import aiosqlite
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from deepagents.events import Event, LimitReached, RunStarted
from deepagents_cli.agents import (
    choose_model,
    is_local,
    make_agent,
    make_backend,
    model_label,
    reader,
    refuse_unpriced,
    refuse_unwatched,
)
from deepagents_cli.approval import ApproveAll, AskPerson, RefuseAll
from deepagents_cli.conversation import Show, converse
from deepagents_cli.diffs import Read
from deepagents_cli.errors import Exit, complain, exit_at_next_interrupt
from deepagents_cli.limits import FLAGS
from deepagents_cli.modes.jsonl import JsonLines
from deepagents_cli.modes.print import Printer
from deepagents_cli.session import Session
from deepagents_cli.settings import Settings, run_settings
from deepagents_cli.terminal import make_console
from deepagents_cli.threads import BUSY_SECONDS, Threads


class Watch:
    """Shows events, and notes when the main agent stops at a limit."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self.reached: LimitReached | None = None

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, LimitReached) and event.agent is None:
            self.reached = event
        self._show(event)


def run(arguments: Namespace, *, model: BaseChatModel | None = None) -> int:
    """Run, or take up, a thread; return the exit code."""
    settings = run_settings(arguments)
    chosen = model or choose_model(settings.model)
    if settings.approve_all:
        refuse_unwatched(chosen)
    refuse_unpriced(chosen, settings.limits)
    backend = make_backend(settings.directory, shell=settings.shell, model=chosen)
    threads = Threads(settings.state)
    thread = threads.choose(settings.directory, settings.thread, latest=settings.resume)
    started = RunStarted(
        thread,
        settings.task,
        model_label(chosen),
        str(settings.directory),
        resumed=settings.resume or settings.task is None,
    )
    with (
        threads.hold(thread),
        _open_output(settings) as show,
        asyncio.Runner() as runner,
        _saver(runner, threads.path) as saver,
    ):
        threads.note(thread, settings.directory)
        ask = _asker(settings, reader(backend), show.pause, one_by_one=is_local(chosen))
        session = Session(make_agent(chosen, backend, saver, settings.limits), thread)
        watch = Watch(show)
        try:
            converse(runner, session, started, ask=ask, show=watch)
        except KeyboardInterrupt:
            # Closing may wait for a request; a person who presses again wants to leave now.
            exit_at_next_interrupt()
            _explain_how_to_go_on(settings, thread)
            raise
    if watch.reached:
        return _report_stop(settings, watch.reached)
    return _verdict(ask.refused)


@contextmanager
def _open_output(settings: Settings) -> Generator[JsonLines | Printer]:
    mode = JsonLines(sys.stdout) if settings.as_json else Printer(make_console(sys.stdout))
    try:
        yield mode
    finally:
        mode.close()


@contextmanager
def _saver(runner: asyncio.Runner, path: Path) -> Generator[AsyncSqliteSaver]:
    async def connect() -> AsyncSqliteSaver:
        connection = await aiosqlite.connect(path, timeout=BUSY_SECONDS)
        # With WAL this loses at most the last steps at a power cut, and never the file.
        await connection.execute("PRAGMA synchronous=NORMAL")
        return AsyncSqliteSaver(connection)

    saver = runner.run(connect())
    try:
        yield saver
    finally:
        runner.run(saver.conn.close())


def _asker(
    settings: Settings, read: Read, pause: Callable[[], None], *, one_by_one: bool
) -> ApproveAll | AskPerson | RefuseAll:
    if settings.approve_all:
        return ApproveAll()
    asked_on = sys.stderr if settings.as_json else sys.stdout
    # A question that no person sees, or that a pipe answers, is no approval.
    if sys.stdin.isatty() and asked_on.isatty():
        return AskPerson(make_console(asked_on), read, pause, one_by_one=one_by_one)
    return RefuseAll()


def _verdict(refused: int) -> int:
    if not refused:
        return Exit.DONE
    calls = "1 call was" if refused == 1 else f"{refused} calls were"
    complain(f"{calls} refused: there is no terminal to ask for approval; allow changes with --yes")
    return Exit.REFUSED


def _report_stop(settings: Settings, reached: LimitReached) -> int:
    complain(
        f"stopped at {FLAGS[reached.kind]} {reached.limit:g}, with the work not finished. Go on with: "
        f'deepagents run --continue{_dir_option(settings)} "Go on."'
    )
    return Exit.LIMITED


def _explain_how_to_go_on(settings: Settings, thread: str) -> None:
    sys.stderr.write("\n")
    complain(f"stopped. Go on with: deepagents run --continue{_dir_option(settings)}")


def _dir_option(settings: Settings) -> str:
    return "" if settings.directory == Path.cwd() else f" --dir {shlex.quote(str(settings.directory))}"
