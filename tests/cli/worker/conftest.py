"""The real worker in a process of its own, driven by the protocol, with a scripted server as its model."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from deepagents_cli.protocol import Message, read, write
from tests.cli.openai_server import MODEL, OpenAIServer, serving

PATIENCE = 30.0


class Worker:
    """The screen's end of a worker."""

    def __init__(self, directory: Path, environment: Mapping[str, str], log: Path) -> None:
        self.directory = directory
        self.seen: list[Message] = []
        self._log = log
        self._rest = b""
        self._ids = 0
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "deepagents_cli.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def send(self, do: str, **message: Any) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(write({"do": do, **message}))
        self.process.stdin.flush()

    def open(self, *, model: str = MODEL, mode: str = "ask", **more: Any) -> Message:
        """Open the directory, and wait until it is ready."""
        given = {"model": f"local-server:{model}", "mode": mode, "options": {}, **more}
        self.send("open", **{"directory": str(self.directory), "thread": None, "resume": False, **given})
        return self.wait("ready")

    def say(self, text: str, *attachments: str) -> None:
        """Send a text of the person."""
        self.send("send", text=text, attachments=list(attachments))

    def turn(self, text: str) -> Message:
        """Send a text, and wait until the turn is over."""
        self.say(text)
        return self.wait("idle")

    def command(self, name: str, arguments: str = "") -> Message:
        """Carry out a slash command."""
        self._ids += 1
        self.send("command", id=self._ids, name=name, arguments=arguments)
        return self.wait("result", id=self._ids)

    def wait(self, kind: str, **fields: Any) -> Message:
        """Wait for the next message of a kind, with these fields."""
        while True:
            message = self.take()
            assert message is not None, f"the worker ended before {kind!r}: {self.log}"
            if message["is"] == kind and all(message.get(key) == value for key, value in fields.items()):
                return message
            unexpected = message["is"] == "failed" or (message["is"] == "idle" and message["error"])
            assert not unexpected, f"waiting for {kind!r}: {message}\n{self.log}"

    def wait_for_failure(self) -> str:
        """Wait until the worker says that it cannot go on, and why."""
        while (message := self.take()) is not None:
            if message["is"] == "failed":
                return message["text"]
        raise AssertionError(f"the worker ended without a word: {self.log}")

    def status(self, **fields: Any) -> Message:
        """Wait until the status has these fields."""
        while not all(self.last("status").get(key) == value for key, value in fields.items()):
            self.wait("status")
        return self.last("status")

    def event(self, kind: str) -> Message:
        """Wait for the next event of a kind."""
        while True:
            event: Message = self.wait("event")["event"]
            if event["type"] == kind:
                return event

    def answer(self) -> str:
        """Wait for the end of the turn, and return the agent's last answer."""
        self.wait("idle")
        events = (each["event"] for each in reversed(self.seen) if each["is"] == "event")
        return next(each["text"] for each in events if each["type"] == "final_answer")

    def last(self, kind: str) -> Message:
        """The last message of a kind that was seen."""
        return next(each for each in reversed(self.seen) if each["is"] == kind)

    def kill(self) -> None:
        """Kill the worker."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def end(self) -> int:
        """End standard input, as a screen that dies does, and return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    @property
    def log(self) -> str:
        """What the worker wrote to standard error."""
        return self._log.read_text("utf-8", "replace")

    def take(self) -> Message | None:
        """Read the next message, whatever it is."""
        while b"\n" not in self._rest:
            assert self.process.stdout is not None
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            assert ready, f"nothing more comes; last: {self.seen[-3:]}\n{self.log}"
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        message = read(line)
        assert message is not None, line
        self.seen.append(message)
        return message


StartWorker: TypeAlias = Callable[[], Worker]


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
    }
    with ExitStack() as stack:

        def begin() -> Worker:
            worker = Worker(directory, environment, tmp_path / "worker.log")
            stack.callback(worker.close)
            return worker

        yield begin


@pytest.fixture
def worker(start: StartWorker) -> Worker:
    """A worker that has just started."""
    return start()
