"""An agent in a directory, whose files are checked after its edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.errors import BackendError
from deepagents.middleware import EditCheck, EditCheckMiddleware
from deepagents.testing import Asked, ScriptedModel, call
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}
LOOK = call("ls", path="/")


def write(path: str, text: str) -> AIMessage:
    """Make a reply that writes a file."""
    return call("write_file", file_path=path, content=text)


class Work:
    """An agent in a directory, whose model follows a script."""

    def __init__(self, directory: Path, call_mode: CallMode, **checks: str | EditCheck) -> None:
        self.directory = directory
        self.backend: Any = LocalShellBackend(directory, env={"HOME": str(directory)})
        self.gives_backend = True
        self.call_mode = call_mode
        self.warned: list[str] = []
        self.patience = 0.0
        self.checks = checks
        self.saver = InMemorySaver()
        self.middleware: EditCheckMiddleware | None = None
        self.beside: list[Any] = []
        self.asked: list[Asked] = []
        self.result: dict[str, Any] = {}

    def thinks(self, reply: Any) -> Callable[[Asked], Any]:
        """Make a reply that comes when all checks that were begun before it have ended."""

        def think(asked: Asked) -> Any:
            for number in count(1):
                try:
                    self.backend.poll_command(f"command-{number}", wait=120)
                except BackendError:
                    return reply(asked) if callable(reply) else reply
            raise AssertionError

        return think

    def turn(self, *script: Any, text: str = "Go on.", **options: Any) -> list[str]:
        """Run a turn through a script that must be used up; return what the checks showed the model."""
        with ScriptedModel(*map(self.thinks, script)) as model:
            self.run(model, {"messages": [HumanMessage(text)]}, **options)
        return self.shown(text)

    def run(self, model: ScriptedModel, given: Any, **options: Any) -> None:
        """Make the agent, and run it."""
        self.middleware = self.middleware or EditCheckMiddleware(
            self.checks, patience=self.patience, warn=self.warned.append
        )
        agent = create_deep_agent(
            model,
            middleware=[self.middleware, *self.beside],
            backend=self.backend if self.gives_backend else None,
            checkpointer=self.saver,
            **options,
        )
        self.asked = model.asked
        self.result = self.call_mode.invoke(agent, given, THREAD)

    def shown(self, text: str = "Go on.") -> list[str]:
        """Return what the checks showed the model since this message."""
        messages: Sequence[Any] = self.result["messages"]
        begun = max(at for at, each in enumerate(messages) if each.text == text)
        return [
            each.text for each in messages[begun:] if each.additional_kwargs.get("lc_source") == "edit_checks"
        ]

    def results(self) -> list[str]:
        """Return the results of all tools."""
        return [each.text for each in self.result["messages"] if each.type == "tool"]
