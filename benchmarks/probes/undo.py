"""What a step costs with a history of files and without, and the disk that the history takes."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.probes import times
from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.testing import ScriptedModel, call
from deepagents.undo import FileHistory
from deepagents.undo.recorder import Recorder
from deepagents.undo.steps import Directories

_LINES = 20


def make_tree(root: Path, count: int) -> int:
    """Write so many files, and return how many bytes they have."""
    total = 0
    for number in range(count):
        path = root / f"folder{number % max(1, count // 100)}" / f"file{number}.py"
        path.parent.mkdir(exist_ok=True)
        text = f"def double_{number}(value):\n    return value * {number}\n" * 9
        path.write_text(text)
        total += len(text)
    return total


def make_agent(root: Path, history: FileHistory | None) -> tuple[Any, ScriptedModel]:
    """Make an agent in a directory."""
    model = ScriptedModel(remembers=False)
    backend = LocalShellBackend(root)
    agent: Any = create_deep_agent(model, backend=backend, checkpointer=InMemorySaver(), file_history=history)
    return agent, model


def seconds_of(agent: Any, model: ScriptedModel, reply: AIMessage, repeats: int) -> float:
    """Return the CPU seconds of a step that makes a call."""
    thread: Any = {"configurable": {"thread_id": "1"}}
    model.then(reply, "Done.")
    agent.invoke({"messages": "Begin"}, thread)
    model.then(*[reply] * repeats, "Done.")
    began = time.process_time()
    agent.invoke({"messages": "Go on"}, thread)
    return (time.process_time() - began) / repeats


def measure_disk(root: Path, history: FileHistory, sessions: int) -> dict[str, float]:
    """Let sessions write files anew, and return what the disk holds of that.

    The steps are recorded as around a file tool, without the agents, whose own work takes most of the time.
    """
    first, written = history.size(), 0
    places = Directories((str(root),))
    lines = random.Random(1)
    for session in range(sessions):
        for edit in range(sessions):
            path = root / f"edited{edit}.txt"
            text = "".join(f"line {lines.random()}\n" for _ in range(_LINES))
            written += len(text)
            begin = partial(
                Recorder.begin_files, thread=f"session {session}", paths=[str(path)], places=places
            )
            step = history.attempt(begin)
            assert step, "the history is off"
            path.write_text(text)
            history.attempt(partial(Recorder.end_files, step=step))
    return {"first": first / 1e6, "grown": (history.size() - first) / written}


def measure(way: str, *counts: int) -> dict[str, float]:
    """Measure one way at all sizes; with a history, also its disk."""
    *sizes, steps = counts
    found: dict[str, float] = {}
    for count in dict.fromkeys(sizes):
        with tempfile.TemporaryDirectory() as place:
            root = Path(place, "project")
            root.mkdir()
            total = make_tree(root, count)
            history = FileHistory(Path(place, "history")) if way == "on" else None
            agent, model = make_agent(root, history)
            if history:
                history.coverage(agent)
                # What was written a moment ago is read again once.
                time.sleep(2.1)
            for key, reply in (
                ("command", call("execute", command="true")),
                ("file", call("write_file", file_path="/a.txt", content="a")),
            ):
                found[f"{key} {count}"] = 1000 * seconds_of(agent, model, reply, max(2, steps // 5))
            if history and count == min(sizes):
                found |= {"text": total / 1e6, **measure_disk(root, history, times(100))}
    return found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], *map(int, sys.argv[2:]))))
