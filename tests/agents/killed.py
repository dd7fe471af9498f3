"""A run in a process of its own that ends in the middle of a request to its model."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents import Limits, create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Noted:
    """A runaway that notes each request in a file, and kills its process at one of them."""

    def __init__(self, path: Path, deadly: int | None = None) -> None:
        self._log = path.with_suffix(".log")
        self._deadly = deadly

    @property
    def requests(self) -> int:
        return len(self._log.read_text().splitlines())

    def __call__(self, asked: Asked) -> AIMessage:
        with self._log.open("a") as log:
            log.write("asked\n")
        if self.requests == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return call("ls", path=f"/{len(asked.messages)}")


def work(path: Path, deadly: int | None = None) -> Any:
    """Begin, or go on, until the limit or the end of the process."""
    with SqliteSaver.from_conn_string(str(path)) as saver:
        model = ScriptedModel(always=Noted(path, deadly))
        agent = create_deep_agent(model, limits=Limits(model_calls=8), checkpointer=saver)
        given = None if agent.get_state(THREAD).values else {"messages": "Go"}
        return agent.invoke(given, THREAD, durability="sync")
