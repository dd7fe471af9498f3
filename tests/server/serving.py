"""A server of the tests' own: in a thread, or as a process that can be killed."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import uvicorn

from deepagents_cli.__main__ import main
from deepagents_server.config import ServerConfig
from deepagents_server.serve import listen, listener
from deepagents_server.server import Settings, open_server
from tests.programs import FORKING

AGENTS = Path(__file__).with_name("agents.py")
GRAPHS = {
    name: f"{AGENTS}:{name}"
    for name in (
        "echo",
        "gate",
        "deep",
        "lifter",
        "metered",
        "mine",
        "notes",
        "obedient",
        "poster",
        "priced",
        "waiter",
        "careful",
    )  # fmt: skip
}
GRAPHS["outer"] = f"{AGENTS}:make_outer"
GRAPHS["boss"] = f"{AGENTS.parents[1] / 'agents' / 'served.py'}:boss"
GRAPHS["digger"] = f"{AGENTS.parents[1] / 'agents' / 'served.py'}:digger"


class _Thread:
    """Runs a server with an event loop of its own."""

    def __init__(self, config: ServerConfig, settings: Settings) -> None:
        self._opened = open_server(config, settings)
        self._settings = settings
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._listening = listen("127.0.0.1", 0)
        self._failure: BaseException | None = None
        self._server: uvicorn.Server | None = None

    async def _serve(self) -> None:
        try:
            async with self._opened as server:
                self._server = listener(server, self._settings)
                self._started.set()
                await self._server.serve([self._listening])
        except BaseException as failure:
            self._failure = failure
            self._started.set()
            raise

    def start(self) -> str:
        self._thread.start()
        assert self._started.wait(60)
        assert self._failure is None, self._failure
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def stop(self) -> None:
        if self._server:
            self._server.should_exit = True
        self._thread.join()
        self._listening.close()


@contextmanager
def serving(
    directory: Path,
    database: str | None = None,
    slots: int = 10,
    version: str = "1",
    bounds: Mapping[str, Any] | None = None,
    graphs: Mapping[str, str] = GRAPHS,
    **settings: Any,
) -> Generator[str]:
    """Serve the graphs of the tests and yield the address.

    With slots only for the one server of the session: DBOS has one engine for a process, and the first server
    that ends shuts it down for the other.
    """
    config = ServerConfig(directory, graphs, **settings)
    address = database or f"sqlite:///{directory / 'server.db'}"
    thread = _Thread(config, Settings(address, slots=slots, version=version, **(bounds or {})))
    try:
        yield thread.start()
    finally:
        thread.stop()


@contextmanager
def serving_apart(directory: Path, database: str) -> Generator[str]:
    """Serve the graphs of the tests in a process of its own and yield the address."""
    process = Process(directory, "--database", database)
    try:
        yield process.start()
    finally:
        if process.pid:
            process.end(signal.SIGTERM)


def make_key(directory: Path, owner: str, *options: str) -> str:
    """Make a key for the server of a directory, as the command does."""
    database = str(directory / ".deepagents" / "server.db")
    # The last one counts.
    given = ["keys", "create", owner, "--database", database, *options]
    shown = io.StringIO()
    with redirect_stdout(shown), redirect_stderr(io.StringIO()):
        assert main(given) == 0
    return shown.getvalue().strip()


class Program:
    """`deepagents` in a directory, which can be killed and begun anew; forked from one with all imports."""

    def __init__(self, directory: Path, *command: str, **environ: str) -> None:
        self._directory = directory
        self._command = [*command, *(["--port", "0"] if command[0] == "serve" else [])]
        self._environ = {**os.environ, **environ}
        self._running: BaseProcess | None = None
        self.log: Path | None = None
        """Where standard error goes, if not to that of the tests."""

    def start(self) -> str:
        """Start, and return the address of a server, or the name of a worker."""
        reading, writing = FORKING.Pipe(duplex=False)
        given = (self._command, str(self._directory), self._environ, writing, self.log)
        self._running = FORKING.Process(target=_run, args=given)
        self._running.start()
        writing.close()
        self._output = os.fdopen(os.dup(reading.fileno()))
        reading.close()
        said = self._output.readline()
        assert said.startswith(("Serving ", "Working ")), said
        return said.split()[-1]

    @property
    def pid(self) -> int:
        """Its number; 0 when it does not run."""
        return (self._running.pid or 0) if self._running else 0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def end(self, how: signal.Signals) -> int:
        """End it by a signal."""
        self.signal(how)
        return self.wait()

    def wait(self) -> int:
        """Wait until it has ended."""
        assert self._running
        self._running.join()
        code = self._running.exitcode
        assert code is not None
        self._output.close()
        self._running = None
        return code

    def close(self) -> None:
        """Leave no process."""
        if self._running:
            self.end(signal.SIGKILL)


class Process(Program):
    """A server of the graphs of the tests, or a worker of one."""

    def __init__(
        self,
        directory: Path,
        *options: str,
        command: str = "serve",
        config: Mapping[str, Any] | None = None,
        **environ: str,
    ) -> None:
        super().__init__(directory, command, *options, **environ)
        (directory / "langgraph.json").write_text(json.dumps({"graphs": GRAPHS, **(config or {})}))


def _run(
    command: Sequence[str],
    directory: str,
    environ: Mapping[str, str],
    writing: Connection,
    log: Path | None,
) -> None:
    if log:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.stderr = os.fdopen(2, "w", buffering=1)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environ)
    os.dup2(writing.fileno(), 1)
    sys.stdout = os.fdopen(1, "w")
    sys.exit(main(command))
