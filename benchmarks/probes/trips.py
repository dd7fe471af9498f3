"""Count what an operation passes on its way through our own code: modules, calls, switches and depth.

Unlike time, these are the same on a busy machine. `python -m benchmarks.probes.trips` prints a table, and
with `--modules` the modules of each trip in the order in which they are first called.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

import deepagents
from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.testing import ScriptedModel, call

_ROOT = f"{Path(deepagents.__file__).parent}/"
_RULES = [FilesystemPermission(operations=["write", "read"], paths=["/secrets/**"], mode="deny")]


@dataclass(slots=True)
class Trip:
    """What was called of our own modules, `testing` left out, which only plays the model."""

    calls: int = 0
    switches: int = 0
    depth: int = 0
    modules: list[str] = field(default_factory=list[str])
    _last: str = ""

    @contextmanager
    def traced(self) -> Generator[None]:
        """Count what is called meanwhile, in every thread."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _see(self, frame: FrameType, event: str, argument: object) -> None:
        module = _own_module(frame)
        if event != "call" or module is None:
            return
        self.calls += 1
        self.switches += bool(self._last) and module != self._last
        self._last = module
        if module not in self.modules:
            self.modules.append(module)
        above: FrameType | None = frame
        depth = 0
        while above is not None:
            depth += _own_module(above) is not None
            above = above.f_back
        self.depth = max(self.depth, depth)

    def __str__(self) -> str:
        return f"{len(self.modules):>7} {self.calls:>6} {self.switches:>9} {self.depth:>6}"


def _own_module(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    if not name.startswith(_ROOT) or name.startswith(f"{_ROOT}testing/"):
        return None
    return name.removeprefix(_ROOT)


def trace_writing(path: str, **options: Any) -> Trip:
    """Return the second of two calls of `write_file`: the first one makes what all others share."""
    steps = [call("write_file", file_path=f"{path}{number}", content="one\n") for number in range(2)]
    agent = create_deep_agent(ScriptedModel(*steps, "Done."), **options)
    tool = agent.nodes["tools"].bound.tools_by_name["write_file"]
    trips: list[Trip] = []
    write = tool.func

    @wraps(write)
    def traced(*args: Any, **arguments: Any) -> Any:
        trips.append(Trip())
        with trips[-1].traced():
            return write(*args, **arguments)

    tool.func = traced
    agent.invoke({"messages": "Go"})
    return trips[-1]


def trace_all(root: Path) -> dict[str, Trip]:
    """Return each trip by what it does, on files below a directory."""
    create_deep_agent(ScriptedModel("Hi.")).invoke({"messages": "Go"})
    building, asking = Trip(), Trip()
    with building.traced():
        agent = create_deep_agent(ScriptedModel("Hi.", "Hi."))
    agent.invoke({"messages": "Go"})
    with asking.traced():
        agent.invoke({"messages": "Go"})
    disk = FilesystemBackend(root, virtual_mode=True)
    tree = CompositeBackend(StateBackend(), {"/disk/": disk})
    return {
        "create_deep_agent(model)": building,
        "one message, one answer": asking,
        "write_file to state": trace_writing("/a"),
        "write_file to disk": trace_writing("/b", backend=disk),
        "write_file to disk, one rule": trace_writing("/c", backend=disk, permissions=_RULES),
        "write_file, composite, one rule": trace_writing("/disk/d", backend=tree, permissions=_RULES),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        trips = trace_all(Path(directory))
    print(f"{'':32} modules  calls  switches  depth")
    for name, trip in trips.items():
        print(f"{name:32} {trip}")
        if "--modules" in sys.argv:
            print(*(f"    {module}" for module in trip.modules), sep="\n")
