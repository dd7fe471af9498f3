"""Processes of their own that need not import LangChain again: they are forked from one that has."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import forkserver, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import IO

from deepagents_cli.__main__ import main

PRELOADED = (
    "deepagents_cli.session.task",
    "deepagents_cli.session.worker",
    "deepagents_cli.views.acp.agent",
    "deepagents_cli.views.chat.screen.screen",
    "deepagents_cli.views.task",
    "deepagents_server.serve",
    "deepagents.testing",
    "langchain_openai",
    # What its client imports for the first request.
    "anyio._backends._asyncio",
    "httpcore2",
    "openai.resources.chat.chat",
    "truststore",
    "langgraph.checkpoint.postgres",
    "langgraph.checkpoint.sqlite",
    "dbos._sys_db_sqlite",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    # What is looked up late: for tools of others, a command, a connection, an answer, a language in it.
    "deepagents.mcp.calls",
    "deepagents.mcp.http",
    "deepagents.mcp.listing",
    "deepagents.mcp.results",
    "deepagents.mcp.stdio",
    "deepagents.middleware.code_mode.middleware",
    "deepagents_cli.views.rendering.markdown",
    "deepagents_server.database.fenced",
    "dbos._sys_db_postgres",
    "jsonschema",
    "langgraph.checkpoint.postgres.aio",
    "langgraph.store.postgres.aio",
    "langchain_core.messages.block_translators.langchain_v0",
    "langchain_core.tracers.stdout",
    "prompt_toolkit.key_binding.bindings.search",
    "pygments.lexers.css",
    "pygments.lexers.javascript",
    "pygments.lexers.sql",
    "tomlkit",
    "uvicorn.lifespan.off",
    # Stories of going back are made up by it.
    "hypothesis",
    # The workers of conversations come from a module of fixtures.
    "tests.cli.session.conftest",
    "tests.cli.views.chat.start",
)
FORKING = get_context("forkserver")
# The first imports the others with less work. It is not found where a test has left the project's directory.
FORKING.set_forkserver_preload(["tests.preloaded", *PRELOADED])


def share() -> None:
    """Start the process that others are forked from, for all processes that this one forks, too.

    Each of these would start its own, for it asks whether the one it knows of is a child of itself.
    """
    # What programs write past their tests is no part of the report.
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        forkserver.ensure_running()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
    vars(forkserver.ensure_running.__self__)["ensure_running"] = lambda: None


def run(program: str, *arguments: str, path: Sequence[Path] = ()) -> CompletedProcess[str]:
    """Run a program, as `python -c` would with these folders on its path."""
    with TemporaryDirectory() as folder:
        printed, warned = Path(folder, "printed"), Path(folder, "warned")
        places = [*map(str, path)]
        child = FORKING.Process(
            target=_run, args=(program, arguments, places, dict(os.environ), str(printed), str(warned))
        )
        child.start()
        child.join()
        return CompletedProcess(program, child.exitcode or 0, printed.read_text(), warned.read_text())


class Started:
    """A process, as `subprocess.Popen` has one."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def send_signal(self, sig: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, sig)

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode or 0


def start(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: IO[bytes], stderr: IO[bytes]
) -> Started:
    """Start `python -m deepagents_cli ...`, as `subprocess.Popen` would; both outputs go to one file."""
    assert stdout is stderr
    arguments = command[command.index("deepagents_cli") + 1 :]
    process = FORKING.Process(target=_serve, args=(arguments, str(cwd), {**env}, str(stdout.name)))
    process.start()
    return Started(process)


def _serve(arguments: Sequence[str], directory: str, environment: Mapping[str, str], log: str) -> None:
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    written = os.open(log, os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(written, number)
    sys.exit(main(arguments))


def _run(
    program: str,
    arguments: Sequence[str],
    path: Sequence[str],
    environment: Mapping[str, str],
    printed: str,
    warned: str,
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for number, place in ((1, printed), (2, warned)):
        os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.path[:0] = path
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
