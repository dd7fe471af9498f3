"""Each change is its own thread's, though others look at the files before the tool that made it has ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langchain.agents.middleware.types import AgentMiddleware, ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import MemorySaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.testing import ScriptedModel, call
from deepagents.undo import FileHistory
from tests.conftest import CallMode
from tests.programs import FORKING
from tests.undo.workshop import Workshop, die_noticed, names

SECOND: Any = {"configurable": {"thread_id": "2"}}


class Behind(AgentMiddleware[Any, Any]):
    """Does something once a tool has done its work, before it is known to have ended."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self._work = work

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        result = handler(request)
        self._work()
        return result


@pytest.fixture
def shop(call_mode: CallMode, tmp_path: Path) -> Workshop:
    return Workshop(call_mode, tmp_path)


@contextmanager
def under_way(shop: Workshop, tool: str, **arguments: str) -> Generator[None]:
    """Let a file tool of the first thread have done its work, but not end until later."""
    is_done, may_end = Event(), Event()

    def wait() -> None:
        is_done.set()
        assert may_end.wait(60)

    agent = create_deep_agent(
        ScriptedModel(call(tool, **arguments), "Done."),
        backend=LocalShellBackend(shop.root),
        checkpointer=shop.saver,
        file_history=shop.history,
        middleware=[Behind(wait)],
    )
    with ThreadPoolExecutor() as pool:
        running = pool.submit(agent.invoke, {"messages": "Go"}, shop.thread)
        try:
            assert is_done.wait(60)
            yield
        finally:
            may_end.set()
        running.result(60)


def test_a_command_that_finds_it_first_leaves_a_file_tool_its_change(shop: Workshop) -> None:
    (shop.root / "a.txt").write_text("0\n")
    start = shop.run("true")
    with under_way(shop, "delete", file_path="/a.txt"):
        second_start = shop.run("echo 2 > two", thread=SECOND)
    plan = shop.plan(start)
    assert names(plan.restored, shop.root) == ["a.txt"]
    assert plan.removed == plan.conflicts == ()
    assert names(shop.plan(second_start).removed, shop.root) == ["two"]
    shop.rewind(start)
    assert (shop.root / "a.txt").read_text() == "0\n"


def test_the_very_first_look_leaves_a_file_tool_its_change(shop: Workshop) -> None:
    start = shop.do(agent=shop.make_agent(FilesystemBackend(shop.root)))
    with under_way(shop, "write_file", file_path="/new.txt", content="1\n"):
        (shop.root / "person.txt").write_text("mine\n")
        shop.run("true", thread=SECOND)
    assert names(shop.plan(start).removed, shop.root) == ["new.txt"]


def test_two_file_tools_at_one_path_are_conflicts_for_both(shop: Workshop) -> None:
    (shop.root / "a.txt").write_text("0\n")
    start = shop.run("true")
    with under_way(shop, "write_file", file_path="/a.txt", content="1\n"):
        second_start = shop.write("a.txt", "2\n", thread=SECOND)
    for each in (start, second_start):
        plan = shop.plan(each)
        assert names(plan.conflicts, shop.root) == ["a.txt"]
        assert plan.restored == plan.removed == ()


class Refusing(Behind):
    """Says that a tool was refused, once it has done its work."""

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        handler(request)
        marks = {"error_code": "permission_denied"}
        return ToolMessage("No.", tool_call_id="1", status="error", additional_kwargs=marks)


def test_a_file_tool_that_is_said_to_be_refused_keeps_its_change(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        shop = Workshop(CallMode("sync", runner), tmp_path)
        (shop.root / "a.txt").write_text("0\n")
        start = shop.run("true")
        agent = shop.make_agent(middleware=[Refusing(lambda: None)])
        shop.write("a.txt", "1\n", agent=agent)
        assert names(shop.plan(start, agent).restored, shop.root) == ["a.txt"]


def _die_behind_a_tool(root: Path, directory: Path) -> None:
    agent = create_deep_agent(
        ScriptedModel(call("write_file", file_path="/a.txt", content="1\n")),
        backend=LocalShellBackend(root),
        checkpointer=MemorySaver(),
        file_history=FileHistory(directory),
        middleware=[Behind(lambda: die_noticed(directory))],
    )
    agent.invoke({"messages": "Go"}, {"configurable": {"thread_id": "1"}})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("execute", {"command": "true"}), ("write_file", {"file_path": "/b.txt", "content": "b\n"})],
)
def test_a_file_tool_whose_process_died_keeps_its_change(
    shop: Workshop, tool: str, arguments: dict[str, str]
) -> None:
    (shop.root / "a.txt").write_text("0\n")
    start = shop.run("true")
    child = FORKING.Process(target=_die_behind_a_tool, args=(shop.root, shop.history.directory))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    shop.do(call(tool, **arguments), thread=SECOND)
    # What a person does once the next step has begun is not the tool's any more.
    (shop.root / "a.txt").write_text("person\n")
    (change,) = shop.plan(start).conflicts
    assert (change.path.name, change.before_bytes) == ("a.txt", b"0\n")
    assert "since" in change.reason


def test_the_first_look_ends_within_a_file_tool(shop: Workshop) -> None:
    for number in range(3_000):
        (shop.root / f"{number}.txt").write_text("much to look at\n")
    (shop.root / "a.txt").write_text("0\n")
    # The look begins beside the model's first answer; the coverage is known when it has ended.
    with under_way(shop, "write_file", file_path="/a.txt", content="1\n"):
        assert shop.history.coverage(shop.agent).commands
    start = [*shop.saver.list({"configurable": {**shop.thread["configurable"], "checkpoint_ns": ""}})][-1]
    shop.rewind(start.config)

    assert (shop.root / "a.txt").read_text() == "0\n"
