"""Graphs that keep the files of a directory, which `KEPT` names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.testing import Asked, ScriptedModel, call
from deepagents.undo import FileHistory

_KEPT = Path(os.environ["KEPT"])
_ROOT = _KEPT / "project"
_ROOT.mkdir(parents=True, exist_ok=True)
_history = FileHistory(_KEPT / "history")


def _obey(asked: Asked) -> Any:
    """Do what is said: `write NAME TEXT`, or `run COMMAND`."""
    last = asked.messages[-1]
    if last.type == "tool":
        return "Done."
    what, _, rest = last.text.partition(" ")
    if what == "run":
        return call("execute", command=rest)
    name, _, text = rest.partition(" ")
    return call("write_file", file_path=f"/{name}", content=text)


def make_keeper(**options: Any) -> Any:
    """Make an agent that keeps the files."""
    return create_deep_agent(
        ScriptedModel(always=_obey), backend=LocalShellBackend(_ROOT), file_history=_history, **options
    )


keeper = make_keeper()
asker = make_keeper(interrupt_on={"write_file": True})


def make_for_run() -> Any:
    """Make an agent for each run."""
    return make_keeper()
