"""`deepagents acp` in a process of its own, and an editor that speaks raw lines with it."""

from __future__ import annotations

import json
import os
import select
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any, Protocol, TypeAlias

import pytest

from deepagents_cli.__main__ import main
from tests.cli.openai_server import MODEL, OpenAIServer, serving
from tests.programs import FORKING

PATIENCE = 60.0
Message: TypeAlias = dict[str, Any]
Handler: TypeAlias = Callable[[Message], Any]


class Failure(Exception):
    """The agent has answered a request with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class Process:
    """`deepagents acp`, at both ends of two pipes."""

    def __init__(self, environment: Mapping[str, str], log: Path, options: tuple[str, ...]) -> None:
        self._log = log
        given, self.writing = FORKING.Pipe(duplex=False)
        self.reading, written = FORKING.Pipe(duplex=False)
        self.process = FORKING.Process(
            target=_serve, args=(given, written, {**environment}, str(log), options)
        )
        self.process.start()
        given.close()
        written.close()

    @property
    def log(self) -> str:
        """What it wrote to standard error."""
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    def kill(self) -> None:
        """Kill it, as the system does where memory is short."""
        self.process.kill()
        self.process.join(PATIENCE)

    def end(self) -> int:
        """End its standard input, as an editor that dies does, and return the exit code."""
        self.writing.close()
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, f"it does not end: {self.log}"
        return self.process.exitcode

    def close(self) -> None:
        """Leave nothing behind."""
        self.kill()
        for pipe in (self.writing, self.reading):
            pipe.close()


class RawEditor:
    """An editor that writes and reads lines, and answers what it is asked by its handlers."""

    def __init__(self, process: Process, directory: Path) -> None:
        self.process = process
        self.directory = directory
        self.seen: list[Message] = []
        self.on: dict[str, Handler] = {}
        self._ids = 0
        self._rest = b""

    def send(self, message: Message) -> None:
        """Write a message."""
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Write whatever these bytes are."""
        while data:
            data = data[os.write(self.process.writing.fileno(), data) :]

    def begin(self, method: str, **params: Any) -> int:
        """Send a request, and return its number."""
        self._ids += 1
        self.send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def call(self, method: str, **params: Any) -> Message:
        """Send a request, and return its result."""
        return self.wait_for(self.begin(method, **params))

    def wait_for(self, number: int) -> Message:
        """Return the result of a request; meanwhile answer what is asked."""
        while True:
            message = self.take()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise Failure(message["error"])
                return message["result"]

    def wait_for_answer(self, number: int) -> Message:
        """Return the result of a request that may have been answered already."""
        known = (each for each in self.seen if each.get("id") == number and "method" not in each)
        return found["result"] if (found := next(known, None)) else self.wait_for(number)

    def take(self) -> Message:
        """Read the next message, and answer it if it asks."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.reading], [], [], PATIENCE)
            assert ready, f"nothing more comes; last: {self.seen[-3:]}\n{self.process.log}"
            piece = os.read(self.process.reading.fileno(), 1 << 16)
            assert piece, f"the agent ended; last: {self.seen[-3:]}\n{self.process.log}"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        message: Message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        self.seen.append(message)
        if "method" in message and "id" in message:
            self._answer(message)
        return message

    def read_rest(self) -> bytes:
        """Read what an agent that has ended wrote last."""
        rest = self._rest
        while piece := os.read(self.process.reading.fileno(), 1 << 16):
            rest += piece
        return rest

    def initialize(self, **capabilities: Any) -> Message:
        """Say what this editor offers."""
        return self.call("initialize", protocolVersion=1, clientCapabilities=capabilities)

    def new(self, **more: Any) -> str:
        """Open a session on the directory."""
        return self.call("session/new", cwd=str(self.directory), mcpServers=[], **more)["sessionId"]

    def prompt(self, session: str, *blocks: str | Message) -> str:
        """Send a prompt, and return why its turn has stopped."""
        return self.wait_for(self.begin_prompt(session, *blocks))["stopReason"]

    def begin_prompt(self, session: str, *blocks: str | Message) -> int:
        """Send a prompt, and return its number."""
        made = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
        return self.begin("session/prompt", sessionId=session, prompt=made)

    def updates(self, kind: str) -> list[Message]:
        """Return the updates of a kind that were seen."""
        told = (each["params"]["update"] for each in self.seen if each.get("method") == "session/update")
        return [each for each in told if each["sessionUpdate"] == kind]

    def wait_for_update(self, kind: str, **fields: Any) -> Message:
        """Wait until an update of a kind with these fields was seen."""
        while True:
            for each in self.updates(kind):
                if all(each.get(name) == value for name, value in fields.items()):
                    return each
            self.take()

    def said(self, kind: str = "agent_message_chunk") -> str:
        """Return what the agent has said, or the person."""
        return "".join(each["content"].get("text", "") for each in self.updates(kind))

    def asked(self, method: str) -> list[Message]:
        """Return what this editor was asked."""
        return [each["params"] for each in self.seen if each.get("method") == method]

    def call_of(self, call: str) -> Message:
        """Return what is shown of a call by now."""
        shown: Message = {}
        for each in [*self.updates("tool_call"), *self.updates("tool_call_update")]:
            if each["toolCallId"] == call:
                shown |= each
        return shown

    def _answer(self, message: Message) -> None:
        handler = self.on.get(message["method"])
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        if handler is None:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        else:
            result = handler(message["params"])
            if result is None:
                return
            answer["result"] = result
        self.send(answer)


def choose(*options: str) -> Handler:
    """Return a handler that chooses these options of what it is asked, one after the other."""
    left = [*options]

    def handle(params: Message) -> Message:
        wanted = left.pop(0)
        known = [each["optionId"] for each in params["options"]]
        assert wanted in known, f"{wanted} is none of {known}"
        return {"outcome": {"outcome": "selected", "optionId": wanted}}

    return handle


def _serve(
    given: Connection,
    written: Connection,
    environment: Mapping[str, str],
    log: str,
    options: tuple[str, ...],
) -> None:
    os.setsid()
    os.environ.update(environment)
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, end in enumerate((given.fileno(), written.fileno(), errors)):
        os.dup2(end, number)
    given.close()
    written.close()
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    if "NOISE" in environment:
        Thread(target=_make_noise, daemon=True).start()
    sys.exit(main(["acp", "--model", f"local-server:{MODEL}", *options]))


def _make_noise() -> None:
    """Print, as other code and programs do, once the agent serves."""
    while stat.S_ISFIFO(os.fstat(0).st_mode) or stat.S_ISSOCK(os.fstat(0).st_mode):
        continue
    for _ in range(100):
        sys.stdout.write("noise\n")
        sys.stdout.flush()
        os.write(1, b"noise\n")
        subprocess.run(["/bin/echo", "noise"], check=True)


class Start(Protocol):
    """Starts `deepagents acp` with options."""

    def __call__(self, *options: str, noise: bool = False) -> RawEditor: ...


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """The model."""
    with serving() as server:
        yield server


@pytest.fixture
def start(server: OpenAIServer, directory: Path, state: Path, tmp_path: Path) -> Iterator[Start]:
    """Start agents; none outlives the test."""
    environment = {
        "DEEPAGENTS_LOCAL_SERVER": server.address,
        "DEEPAGENTS_STATE": str(state),
        "HOME": str(tmp_path / "home"),
        # The process that agents are forked from has those of its first test.
        "DEEPAGENTS_SETTINGS": str(tmp_path / "settings.toml"),
        "DEEPAGENTS_MODEL_RETRIES": "",
    }
    (tmp_path / "home").mkdir()
    with ExitStack() as stack:

        def begin(*options: str, noise: bool = False) -> RawEditor:
            given = {**environment, **({"NOISE": "1"} if noise else {})}
            process = Process(given, tmp_path / "acp.log", options)
            stack.callback(process.close)
            return RawEditor(process, directory)

        yield begin


@pytest.fixture
def editor(start: Start) -> RawEditor:
    """An editor whose agent has just started."""
    started = start()
    started.initialize()
    return started
