"""The real worker, forked from a process that has imported all, and a scripted server as its model."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from deepagents.events import FinalAnswer
from deepagents_cli import protocol
from deepagents_cli.commands.args import build_parser
from deepagents_cli.commands.chat import opening_of
from deepagents_cli.session.__main__ import main
from tests.cli.openai_server import MODEL, OpenAIServer, serving
from tests.programs import FORKING

PATIENCE = 30.0
TERMINAL = 100
"""The number that a worker has its screen's terminal by."""
OPENING = opening_of(build_parser()[0].parse_args(["chat"]))
"""What is sent where no option was typed."""
Kind = TypeVar("Kind")


class Worker:
    """The screen's end of a worker."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], log: Path, terminal: str | None
    ) -> None:
        self.directory = directory
        self.seen: list[protocol.ToScreen] = []
        self._log = log
        self._rest = b""
        self._ids = 0
        given, self._writing = FORKING.Pipe(duplex=False)
        self._reading, written = FORKING.Pipe(duplex=False)
        self.process = FORKING.Process(
            target=_work, args=(given, written, {**environment}, str(log), terminal)
        )
        self.process.start()
        given.close()
        written.close()

    def send(self, message: protocol.ToWorker) -> None:
        """Send a message."""
        line = protocol.write(message)
        while line:
            line = line[os.write(self._writing.fileno(), line) :]

    def begin(self, **given: Any) -> None:
        """Ask it to open the directory."""
        self.send(replace(OPENING, **{"directory": str(self.directory), "mode": "ask", **given}))

    def open(self, *, model: str = MODEL, **given: Any) -> protocol.Ready:
        """Open the directory, and wait until it is ready."""
        self.begin(model=f"local-server:{model}", **given)
        return self.wait(protocol.Ready)

    def say(self, text: str, *attachments: str) -> None:
        """Send a text of the person."""
        self.send(protocol.Send(text, attachments))

    def turn(self, text: str) -> protocol.Idle:
        """Send a text, and wait until the turn is over."""
        self.say(text)
        return self.wait(protocol.Idle)

    def command(self, name: str, arguments: str = "") -> protocol.Result:
        """Carry out a slash command."""
        self._ids += 1
        self.send(protocol.Invoke(self._ids, name, arguments))
        return self.wait(protocol.Result, id=self._ids)

    def decide(self, asked: protocol.Ask, decision: Any, **more: Any) -> None:
        """Decide about a call that waits."""
        self.send(protocol.Decide(asked.id, decision, **more))

    def wait(self, kind: type[Kind], **fields: Any) -> Kind:
        """Wait for the next message of a kind, with these fields."""
        while True:
            message = self.take()
            assert message is not None, f"the worker ended before {kind.__name__}: {self.log}"
            if isinstance(message, kind) and has(message, fields):
                return message
            failed = getattr(message, "error", None) or isinstance(message, protocol.Failed)
            assert not failed, f"waiting for {kind.__name__}: {message}\n{self.log}"

    def wait_for_failure(self) -> str:
        """Wait until the worker says that it cannot go on, and why."""
        while (message := self.take()) is not None:
            if isinstance(message, protocol.Failed):
                return message.text
        raise AssertionError(f"the worker ended without a word: {self.log}")

    def wait_for_end_of_turn(self) -> protocol.Idle:
        """Wait until the turn is over, which may have failed."""
        while not isinstance(message := self.take(), protocol.Idle):
            assert message is not None, f"the worker ended in the turn: {self.log}"
        return message

    def status(self, **fields: Any) -> protocol.Status:
        """Wait until the status has these fields."""
        while not has(self.last(protocol.Status), fields):
            self.wait(protocol.Status)
        return self.last(protocol.Status)

    def event(self, kind: type[Kind]) -> Kind:
        """Wait for the next event of a kind."""
        while not isinstance(event := self.wait(protocol.Happened).event, kind):
            pass
        return event

    def answer(self) -> str:
        """Wait for the end of the turn, and return the agent's last answer."""
        self.wait(protocol.Idle)
        shown = (each.event for each in reversed(self.all(protocol.Happened)))
        return next(each.text for each in shown if isinstance(each, FinalAnswer))

    def all(self, kind: type[Kind]) -> list[Kind]:
        """The messages of a kind that were seen."""
        return [each for each in self.seen if isinstance(each, kind)]

    def last(self, kind: type[Kind]) -> Kind:
        """The last of them."""
        return self.all(kind)[-1]

    def kill(self) -> None:
        """Kill the worker."""
        self.process.kill()
        self.wait_for_end()

    def end(self) -> int:
        """End standard input, as a screen that dies does, and return the exit code."""
        self._writing.close()
        return self.wait_for_end()

    def wait_for_end(self) -> int:
        """Wait until the worker has ended, and return its exit code."""
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, f"the worker does not end: {self.log}"
        return self.process.exitcode

    def close(self) -> None:
        """Leave nothing behind."""
        self.kill()
        for pipe in (self._writing, self._reading):
            pipe.close()

    @property
    def log(self) -> str:
        """What the worker wrote to standard error."""
        return self._log.read_text("utf-8", "replace")

    def take(self) -> protocol.ToScreen | None:
        """Read the next message, whatever it is."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._reading], [], [], PATIENCE)
            assert ready, f"nothing more comes; last: {self.seen[-3:]}\n{self.log}"
            piece = os.read(self._reading.fileno(), 1 << 16)
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        message = protocol.read_for_screen(line)
        self.seen.append(message)
        return message


def has(message: object, fields: Mapping[str, Any]) -> bool:
    return all(getattr(message, name) == value for name, value in fields.items())


def _work(
    given: Connection, written: Connection, environment: Mapping[str, str], log: str, terminal: str | None
) -> None:
    os.setsid()
    os.environ.update(environment)
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, end in enumerate((given.fileno(), written.fileno(), errors)):
        os.dup2(end, number)
    given.close()
    written.close()
    if terminal:
        # It is the screen's, and this process belongs to none.
        os.dup2(os.open(terminal, os.O_RDWR | os.O_NOCTTY), TERMINAL)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.exit(main())


class StartWorker(Protocol):
    """Starts a worker, which may have the terminal with this name."""

    def __call__(self, terminal: str | None = None) -> Worker: ...


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """The model."""
    with serving() as server:
        yield server


@pytest.fixture
def start(server: OpenAIServer, directory: Path, state: Path, tmp_path: Path) -> Iterator[StartWorker]:
    """Start workers on the directory; none outlives the test."""
    environment = {
        "DEEPAGENTS_LOCAL_SERVER": server.address,
        "DEEPAGENTS_STATE": str(state),
        "HOME": str(tmp_path / "home"),
        # The process that workers are forked from has those of its first test.
        "DEEPAGENTS_SETTINGS": str(tmp_path / "settings.toml"),
        "DEEPAGENTS_MODEL_RETRIES": "",
    }
    with ExitStack() as stack:

        def begin(terminal: str | None = None) -> Worker:
            worker = Worker(directory, environment, tmp_path / "worker.log", terminal)
            stack.callback(worker.close)
            return worker

        yield begin


@pytest.fixture
def worker(start: StartWorker) -> Worker:
    """A worker that has just started."""
    return start()
