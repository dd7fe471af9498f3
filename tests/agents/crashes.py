"""An agent in a child process that is killed, and goes on in another: what it does, and how it is started."""

from __future__ import annotations

import os
import re
import select
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolCall
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.testing import Asked, WindowedModel
from tests.agents.busy import look_up, text
from tests.programs import FORKING

STEPS = 20
WINDOW = 6_000
PATIENCE = 60.0
REQUEST = "Write twenty files, and keep in mind: zebra crossing."
SUMMARY, STEP, MADE = "s", "t", "r"
"""What a child says: it asks for a summary, it asks for a step, it is ready."""


@dataclass(frozen=True, slots=True)
class Thread:
    """Where a run is kept: its thread, the saver, and the directory that it works in."""

    name: str
    saver: str
    root: Path

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.name}}

    @contextmanager
    def agent(self, model: WindowedModel) -> Generator[Any]:
        """Make the agent of this thread."""
        connect = PostgresSaver if self.saver.startswith("host=") else SqliteSaver
        with connect.from_conn_string(self.saver) as saver:
            backend = FilesystemBackend(self.root, virtual_mode=True)
            yield create_deep_agent(model, tools=[look_up], backend=backend, checkpointer=saver)


class Child:
    """A process that takes a run up and leads it to its end, unless it is killed."""

    def __init__(self, thread: Thread) -> None:
        self._reading, writing = FORKING.Pipe(duplex=False)
        self._process: BaseProcess = FORKING.Process(target=_live, args=(thread, writing))
        self._process.start()
        writing.close()

    def wait_for(self, mark: str, times: int = 1) -> bool:
        """Read until a mark was written so many times; tell whether the child lives."""
        for _ in range(times):
            while (read := self._read()) != mark:
                if not read:
                    return False
        return True

    def kill(self) -> bool:
        """End it at once; tell whether it had not ended by itself."""
        self._process.kill()
        self._process.join(PATIENCE)
        return self._process.exitcode == -signal.SIGKILL

    def end(self) -> int | None:
        """Wait until it has ended, and return its exit code."""
        while self._read():
            continue
        self._process.join(PATIENCE)
        return self._process.exitcode

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process.exitcode is None:
            self._process.kill()
        self._process.join(PATIENCE)
        self._reading.close()

    def _read(self) -> str:
        ready, _, _ = select.select([self._reading], [], [], PATIENCE)
        assert ready, "the child says nothing more"
        return os.read(self._reading.fileno(), 1).decode()


def next_step(asked: Asked) -> AIMessage | str:
    """Say what comes after the last step that a request shows; it depends on nothing else."""
    said = [message for message in asked.messages if message.type == "ai"]
    found = re.match(r"Step (\d+)", said[-1].text) if said else None
    step = int(found[1]) + 1 if found else 1
    if step > STEPS:
        return "All is done."
    content = text(200 + 137 * (step % 11), f"file {step}")
    looking = {"topic": f"{step}", "size": 300 + 419 * (step % 7)}
    wanted = [("write_file", {"file_path": f"/files/{step}.txt", "content": content}), ("look_up", looking)]
    made = [ToolCall(name=name, args=args, id=f"{step}_{name}") for name, args in wanted]
    return AIMessage(f"Step {step}.", tool_calls=made)


def model(said: int | None = None) -> WindowedModel:
    """Make the model of a run, which writes a mark for each request."""

    def tell(mark: str) -> None:
        if said is not None:
            os.write(said, mark.encode())

    def step(asked: Asked) -> AIMessage | str:
        tell(STEP)
        return next_step(asked)

    def summary(asked: Asked) -> str:
        tell(SUMMARY)
        return f"Summary of {len(asked.last)} characters."

    return WindowedModel(always=step, summary=summary, window=WINDOW)


def go_on(agent: Any, config: Any) -> Any:
    """Take up what was begun, or begin."""
    begun = agent.get_state(config)
    if not begun.values.get("messages"):
        return agent.invoke({"messages": [{"role": "user", "content": REQUEST}]}, config)
    return agent.invoke(None, config) if begun.tasks else begun.values


def _live(thread: Thread, writing: Connection) -> None:
    said = writing.fileno()
    with thread.agent(model(said)) as agent:
        os.write(said, MADE.encode())
        go_on(agent, thread.config)
