"""An agent on a directory, with a history of files: what tests of undo begin with."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.testing import ScriptedModel, call
from deepagents.undo import FileHistory
from tests.conftest import CallMode


class Workshop:
    """A directory, an agent that works in it, and what takes its work back."""

    def __init__(self, mode: CallMode, path: Path, **options: Any) -> None:
        self.mode = mode
        self.root = path / "project"
        self.root.mkdir(exist_ok=True)
        self.saver = options.pop("saver", None) or MemorySaver()
        self.history: FileHistory = options.pop("history", None) or FileHistory(path / "history", **options)
        self.model = ScriptedModel()
        self.agent = self.make_agent()
        self.thread: Any = {"configurable": {"thread_id": "1"}}

    def make_agent(self, backend: Any = None, **options: Any) -> Any:
        """Make another agent on the same directory, thread and history."""
        return create_deep_agent(
            self.model,
            backend=backend or LocalShellBackend(self.root),
            checkpointer=self.saver,
            file_history=options.pop("file_history", self.history),
            **options,
        )

    def do(self, *replies: AIMessage, thread: Any = None, agent: Any = None) -> Any:
        """Let the agent make these calls, one after the other; return the checkpoint before."""
        agent, thread = agent or self.agent, thread or self.thread
        before = self.mode.call(agent, "get_state", thread).config
        self.model.then(*replies, "Done.")
        self.mode.invoke(agent, {"messages": "Go on"}, thread)
        if "checkpoint_id" not in before["configurable"]:
            # A new thread begins with the checkpoint that its first message makes.
            own: Any = {"configurable": {**thread["configurable"], "checkpoint_ns": ""}}
            before = [*self.saver.list(own)][-1].config
        return before

    def run(self, command: str, **options: Any) -> Any:
        """Let the agent run a command; return the checkpoint before."""
        return self.do(call("execute", command=command), **options)

    def write(self, name: str, content: str, **options: Any) -> Any:
        """Let the agent write a file; return the checkpoint before."""
        return self.do(call("write_file", file_path=f"/{name}", content=content), **options)

    @property
    def head(self) -> Any:
        """Where the thread stands."""
        return self.mode.call(self.agent, "get_state", self.thread).config

    def plan(self, target: Any, agent: Any = None) -> Any:
        return self.mode.call(self.history, "plan", agent or self.agent, target)

    def rewind(self, target: Any, agent: Any = None, **options: Any) -> Any:
        """Go back, as a plan says."""
        agent = agent or self.agent
        return self.mode.call(self.history, "rewind", agent, self.plan(target, agent), **options)

    def messages(self) -> list[str]:
        state = self.mode.call(self.agent, "get_state", self.thread)
        return [message.text for message in state.values.get("messages", ())]

    def tree(self) -> dict[str, tuple[str, int, bytes]]:
        return read_tree(self.root)


def die_noticed(history: Path) -> None:
    """Kill this process, after a sign that it lived behind all that it has done."""
    (history / "now").touch()
    done = (history / "now").stat().st_mtime_ns
    until = time.monotonic() + 10
    signs = [*history.glob("processes/*.lock")]
    while max(each.stat().st_mtime_ns for each in signs) <= done and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


LOCKS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


class Neighbour:
    """Another process, which holds the file of a history for as long as it is let."""

    def __init__(self, history: Path) -> None:
        command = [sys.executable, "-c", LOCKS, str(history / "files.db")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout
        assert self._process.stdout.readline() == b"held\n"

    def let_go(self) -> None:
        self._process.communicate()


def copy_thread(saver: Any, source: str, name: str) -> None:
    """Copy a thread with the ids of its checkpoints, as a server does."""
    for space, kept in saver.storage[source].items():
        saver.storage[name][space].update(kept)
    for table in (saver.blobs, saver.writes):
        table.update({(name, *key[1:]): value for key, value in [*table.items()] if key[0] == source})


def read_tree(root: Path, *, passes: Callable[[str], bool] = lambda name: False) -> dict[str, Any]:
    """Read all that is below a directory: kind, mode and content of each path."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for above, folders, files in os.walk(os.fsencode(root)):
        folders[:] = [each for each in folders if not passes(os.fsdecode(each))]
        for name in [*folders, *files]:
            path = Path(os.fsdecode(above), os.fsdecode(name))
            about = path.lstat()
            key = str(path.relative_to(root))
            mode = stat.S_IMODE(about.st_mode)
            if stat.S_ISLNK(about.st_mode):
                found[key] = ("link", 0, os.fsencode(path.readlink()))
            elif stat.S_ISDIR(about.st_mode):
                found[key] = ("directory", mode, b"")
            elif stat.S_ISREG(about.st_mode):
                found[key] = ("file", mode, path.read_bytes())
            else:
                found[key] = ("special", mode, b"")
    return found


@contextmanager
def mounted(place: Path, *options: str, source: str | Path = "none") -> Generator[Path]:
    """Mount a file system: one of the kernel's, or what a file holds."""
    place.mkdir(exist_ok=True)
    command = ["mount", *options, str(source), str(place)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def held(path: Path) -> Generator[None]:
    """Keep a file from being replaced: it is mounted on itself."""
    command = ["mount", "--bind", str(path), str(path)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def listed(folder: Path) -> list[str]:
    """List a directory."""
    return sorted(each.name for each in folder.iterdir())


def names(changes: Any, root: Path) -> list[str]:
    """Return the paths of changes, from a directory on."""
    return sorted(str(each.path.relative_to(root)) for each in changes)
