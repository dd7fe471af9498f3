"""What checkers complain of after a change reaches the model: once, and only what is new."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.errors import BackendError
from deepagents.middleware import EditCheck, EditCheckMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

BIN = Path(sys.executable).parent
RUFF = f"{BIN}/ruff check --no-cache --output-format=concise"
WAIT = call("wait")


class Work:
    """An agent in a directory, whose model does as it is told."""

    def __init__(self, directory: Path, call_mode: CallMode, **checks: str | EditCheck) -> None:
        self.directory = directory
        self.backend = LocalShellBackend(directory, env={"HOME": str(directory)})
        self.call_mode = call_mode
        self.warned: list[str] = []
        self.patience = 0.0
        self.checks = checks
        self.saver = InMemorySaver()

    def turn(self, *script: Any, text: str = "Go on.", also: Sequence[Any] = ()) -> list[str]:
        """Run a turn through a script that must be used up; return what the checks showed the model."""

        @tool
        def wait() -> str:
            """Wait until the checks that were begun have ended."""
            for number in count(1):
                try:
                    self.backend.poll_command(f"command-{number}", wait=60)
                except BackendError:
                    return "They have."
            raise AssertionError

        with ScriptedModel(*script) as model:
            checks = EditCheckMiddleware(self.checks, patience=self.patience, warn=self.warned.append)
            agent = create_deep_agent(
                model, tools=[wait], middleware=[checks, *also], backend=self.backend, checkpointer=self.saver
            )
            asked = {"messages": [HumanMessage(text)]}
            messages = self.call_mode.invoke(agent, asked, {"configurable": {"thread_id": "1"}})["messages"]
        begun = max(at for at, each in enumerate(messages) if each.text == text)
        return [
            each.text for each in messages[begun:] if each.additional_kwargs.get("lc_source") == "edit_checks"
        ]


def test_a_mistake_is_shown_once_and_no_more_when_it_is_mended(tmp_path: Path, call_mode: CallMode) -> None:
    (tmp_path / "old.py").write_text("import os\n")
    work = Work(tmp_path, call_mode, ruff=RUFF)

    shown = work.turn(
        WAIT,
        call("write_file", file_path="/new.py", content="import sys\n"),
        WAIT,
        call("ls", path="/"),
        call("write_file", file_path="/new.py", content="print(1)\n"),
        WAIT,
        "Done.",
    )

    assert len(shown) == 1
    assert "ruff: 1 new\n  new.py:1:8: F401 [*] `sys` imported but unused" in shown[0]
    assert "old.py" not in shown[0]
