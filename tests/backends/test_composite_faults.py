"""What goes wrong on one route, and what it does not do to the others."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StoreBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import ReadResult
from deepagents.testing import ScriptedModel, call
from tests.backends.flat_backend import FlatBackend
from tests.conftest import CallMode
from tests.tools.bench import code_of

FAST = 0.5


class Untold(FlatBackend):
    """Cannot tell what it can do."""

    def capabilities(self, path: str = "/") -> Capabilities:
        raise RuntimeError("no database")


class Unlinked(FlatBackend):
    """Cannot tell where links lead."""

    def real_path(self, path: str) -> str:
        raise OSError(5, "Input/output error", "/real/host/path")


def unmade(runtime: Any) -> BackendProtocol:
    raise RuntimeError("no database")


WORK = [
    call("write_file", file_path="/x", content="one"),
    call("ls", path="/"),
    call("read_file", file_path="/x"),
    call("grep", pattern="one"),
    call("glob", pattern="*"),
]


@pytest.mark.filterwarnings("ignore:A backend factory:DeprecationWarning")
@pytest.mark.parametrize("route", [unmade, Untold(), Unlinked()])
def test_a_route_that_fails_leaves_the_others_usable(call_mode: CallMode, tmp_path: Path, route: Any) -> None:
    rules = [FilesystemPermission(["read"], ["/m/secret/**"], "deny")]
    backend = CompositeBackend(FilesystemBackend(tmp_path), {"/m/": route})
    with ScriptedModel(*WORK, call("read_file", file_path="/m/a"), "Done.") as model:
        agent = create_deep_agent(model, backend=backend, permissions=rules)
        told = call_mode.invoke(agent, {"messages": "Go"})["messages"][2:-1:2]

    assert [code_of(each) for each in told[:3]] == [None] * 3
    assert all("/x" in each.text for each in told[3:5])
    assert code_of(told[5]) is not None
    assert not any("/real" in each.text for each in told)


def test_a_factory_is_asked_once_for_each_model_call_and_each_tool_call_that_reaches_it(
    call_mode: CallMode, tmp_path: Path
) -> None:
    made: list[Any] = []

    def make(runtime: Any) -> BackendProtocol:
        made.append(runtime)
        return FlatBackend({"/a": "one"})

    with pytest.warns(DeprecationWarning, match="factory"):
        backend = CompositeBackend(FilesystemBackend(tmp_path), {"/m/": make})

    def count(asked: Any) -> Any:
        counts.append(len(made))
        made.clear()
        return next(script)

    counts: list[int] = []
    script = iter([*WORK, call("read_file", file_path="/m/a"), "Done."])
    with ScriptedModel(*[count] * 7) as model:
        call_mode.invoke(create_deep_agent(model, backend=backend), {"messages": "Go"})

    assert counts == [1, 1 + 0, 1 + 0, 1 + 0, 1 + 1, 1 + 1, 1 + 1]


class Wedged(FlatBackend):
    """Reads nothing until it is let go."""

    def __init__(self, let_go: threading.Event) -> None:
        super().__init__()
        self.let_go = let_go

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        self.let_go.wait(60)
        return super().read(file_path, offset, limit)


def test_a_route_that_hangs_holds_up_no_other(call_mode: CallMode, let_go: threading.Event) -> None:
    backend = CompositeBackend(StoreBackend(store=InMemoryStore()), {"/w": Wedged(let_go)})
    hanging = call("read_file", file_path="/w/a")
    with ScriptedModel(*[hanging] * 5, *WORK, "Done.") as model:
        files = FilesystemMiddleware(backend=backend, backend_timeout=FAST)
        agent = create_deep_agent(model, middleware=[files])
        told = call_mode.invoke(agent, {"messages": "Go"})["messages"][2:-1:2]

    assert [code_of(each) for each in told] == ["timeout"] * 5 + [None] * 5
    assert "read was not tried" in told[4].text


def test_a_link_to_what_a_route_hides_reads_it_under_the_rules_of_that_place(
    call_mode: CallMode, tmp_path: Path
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "old").write_text("hidden")
    (tmp_path / "link").symlink_to("m/old")
    backend = CompositeBackend(FilesystemBackend(tmp_path), {"/m": FlatBackend()})
    rules = [FilesystemPermission(["read"], ["/m/**"], "deny")]
    with ScriptedModel(call("read_file", file_path="/link"), "Done.") as model:
        agent = create_deep_agent(model, backend=backend, permissions=rules)
        told = call_mode.invoke(agent, {"messages": "Go"})["messages"][2]

    assert call_mode.call(backend, "read", "/m/old").file_data is None
    assert call_mode.call(backend, "read", "/link").file_data["content"] == "hidden"
    assert code_of(told) == "permission_denied"
