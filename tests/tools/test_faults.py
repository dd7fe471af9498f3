"""Whatever a backend does wrong, the tool answers with an error in bounded time and the run goes on."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import BackendProtocol, StateBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import (
    DeleteResult,
    ExecuteResponse,
    FileInfo,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
)
from deepagents.backends.store import StoreBackend
from deepagents.errors import BackendError
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.tools.bench import code_of

pytestmark = pytest.mark.slow

TOOLS: dict[str, dict[str, Any]] = {
    "ls": {"path": "/"},
    "read_file": {"file_path": "/a.md"},
    "write_file": {"file_path": "/a.md", "content": "A"},
    "edit_file": {"file_path": "/a.md", "old_string": "A", "new_string": "B"},
    "delete": {"file_path": "/a.md"},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "A"},
    "execute": {"command": "true"},
}
METHODS = {"read_file": "read", "write_file": "write", "edit_file": "edit"}
FAST = 0.05
BOUNDED = 20.0


def run(call_mode: CallMode, backend: Any, *script: Any, **options: Any) -> list[ToolMessage]:
    """Run an agent through calls that each meet a fault; it must come to its end."""
    middleware = [FilesystemMiddleware(backend=backend, **options)] if options else ()
    with ScriptedModel(*script, "Done.") as model:
        agent = create_deep_agent(model, backend=backend, middleware=middleware, tools=[flood])
        began = time.monotonic()
        result = call_mode.invoke(agent, {"messages": "Go"})
    assert time.monotonic() - began < BOUNDED
    assert result["messages"][-1].text == "Done."
    return [message for message in result["messages"] if message.type == "tool"]


def flood() -> str:
    """Answer with more than one result may hold."""
    return "flood\n" * 20_000


class Answers:
    """A backend made of one function, which every method calls."""

    def __init__(self, do: Callable[[str], Any]) -> None:
        self.do = do

    def capabilities(self, path: str = "/") -> Capabilities:
        return Capabilities(execute=True, delete=True)

    def __getattribute__(self, name: str) -> Any:
        plain = object.__getattribute__(self, name)
        if name not in {"ls", "read", "write", "edit", "delete", "glob", "grep", "execute"}:
            return plain
        return lambda *args, **options: object.__getattribute__(self, "do")(name)


def answering(do: Callable[[str], Any]) -> Any:
    """Make a backend whose every method does the same, in a thread of its own when awaited."""
    return type("Answering", (Answers, SandboxBackendProtocol), {})(do)


class Gate:
    """Where calls wait until somebody opens; nothing waits longer than the tests may take."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.at_the_gate = 0
        self.held: list[threading.Thread] = []

    def hold(self, method: str) -> Any:
        self.at_the_gate += 1
        self.held.append(threading.current_thread())
        self.open.wait(60)
        return LsResult(entries=[])

    def release(self) -> None:
        self.open.set()
        for thread in self.held:
            if thread is not threading.current_thread():
                thread.join(10)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that is open at the end, so that no thread outlives a test."""
    gate = Gate()
    yield gate
    gate.release()


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "execute"])
def test_a_wedged_backend_is_not_waited_for(call_mode: CallMode, gate: Gate, tool: str) -> None:
    [said] = run(call_mode, answering(gate.hold), call(tool, **TOOLS[tool]), backend_timeout=FAST)

    assert code_of(said) == "timeout"
    assert "timed out after 0.05s. It may still take effect" in said.text
    assert gate.at_the_gate == 1


class NeverAwaits(BackendProtocol):
    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets the event")


def test_a_coroutine_that_never_ends_is_not_waited_for() -> None:
    with asyncio.Runner() as runner:
        call_mode = CallMode("async", runner)
        [said] = run(call_mode, NeverAwaits(), call("read_file", file_path="/a.md"), backend_timeout=FAST)

    assert code_of(said) == "timeout"


def test_a_command_has_its_own_time_and_not_that_of_a_read(call_mode: CallMode) -> None:
    def slow(method: str) -> Any:
        threading.Event().wait(4 * FAST)
        return ExecuteResponse("done", 0)

    [said] = run(call_mode, answering(slow), call("execute", command="true"), backend_timeout=FAST)

    assert said.status == "success"


def test_after_four_calls_left_behind_the_next_is_refused_until_they_return(
    call_mode: CallMode, gate: Gate
) -> None:
    list_it = call("ls", path="/")

    def after_the_release(asked: Any) -> Any:
        gate.release()
        return call("ls", path="/")

    script = [*(call("ls", path="/") for _ in range(4)), list_it, after_the_release]
    told = run(call_mode, answering(gate.hold), *script, backend_timeout=FAST)

    assert [code_of(each) for each in told] == ["timeout"] * 5 + [None]
    assert "timed out after" in told[3].text
    assert "was not tried: too many calls are already running" in told[4].text
    assert gate.at_the_gate == 5


def test_a_large_result_is_cut_when_its_place_is_wedged(call_mode: CallMode, gate: Gate) -> None:
    [said] = run(call_mode, answering(gate.hold), call("flood"), backend_timeout=FAST)

    assert is_start_of_flood(said.text)


def is_start_of_flood(text: str) -> bool:
    """Return whether a result says that it could not be saved, and shows as much as a result may have."""
    return "could not be saved" in text and flood()[:80_000] in text and len(text) < 80_500


PROGRAM = """
import asyncio, threading
from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import BackendProtocol
from deepagents.testing import ScriptedModel, call

class Wedged(BackendProtocol):
    def ls(self, path):
        threading.Event().wait()

def make():
    files = FilesystemMiddleware(backend=Wedged(), backend_timeout=0.05)
    model = ScriptedModel(*[call("ls", path="/")] * 4, "Done.")
    return create_deep_agent(model, backend=Wedged(), middleware=[files])

blocking = make().invoke({"messages": "Go"})
awaited = asyncio.run(make().ainvoke({"messages": "Go"}))
hanging = [each for each in threading.enumerate() if each.name == "deepagents-io"]
print(blocking["messages"][-1].text, awaited["messages"][-1].text, len(hanging))
"""


@pytest.mark.slow
def test_a_program_ends_although_its_backend_never_answers() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)

    assert (ended.returncode, ended.stdout.split()) == (0, ["Done.", "Done.", "8"]), ended.stderr


class Own(Exception):
    """An exception that nobody here knows."""


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


ODD = [KeyError("/a.md"), RuntimeError("boom"), Own("odd"), Mute(), StopIteration("stop"), AssertionError()]


@pytest.mark.parametrize("error", ODD, ids=lambda error: type(error).__name__)
def test_whatever_a_backend_raises_is_an_error_of_the_tool(call_mode: CallMode, error: Exception) -> None:
    told = run(call_mode, raising(error), *(call(tool, **TOOLS[tool]) for tool in TOOLS))

    assert [(each.name, code_of(each)) for each in told] == [(tool, "io_error") for tool in TOOLS]
    for tool, each in zip(TOOLS, told, strict=True):
        assert f"{METHODS.get(tool, tool)} failed: " in each.text


def test_a_large_result_is_cut_when_it_cannot_be_moved(call_mode: CallMode) -> None:
    [said] = run(call_mode, raising(Mute()), call("flood"))

    assert is_start_of_flood(said.text)


def raising(error: Exception) -> Any:
    def do(method: str) -> Any:
        raise error

    return answering(do)


REFUSALS = [
    (FileNotFoundError(2, "No such file", "/home/secret/a.md"), "file_not_found"),
    (PermissionError(13, "Permission denied", "/home/secret/a.md"), "permission_denied"),
    (IsADirectoryError(21, "Is a directory", "/home/secret/a.md"), "is_directory"),
    (NotADirectoryError(20, "Not a directory", "/home/secret/a.md"), "not_a_directory"),
    (FileExistsError(17, "File exists", "/home/secret/a.md"), "already_exists"),
    (TimeoutError("slow"), "timeout"),
    (OSError(28, "No space left on device", "/home/secret/a.md"), "io_error"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "invalid_encoding"),
    (ValueError("limit makes no sense"), "invalid_argument"),
    (NotImplementedError("not here"), "not_supported"),
    (ConnectionError("lost https://host/?key=secret"), "io_error"),
    (BackendError("too_large", "far too large"), "too_large"),
]


def test_what_the_system_refused_has_its_code_and_no_real_path(call_mode: CallMode) -> None:
    errors = iter([error for error, _ in REFUSALS])

    def refuse(method: str) -> Any:
        # What is there instead of a file that is missing is asked for as well.
        raise next(errors) if method in ("read", "aread") else OSError(5, "/home/secret cannot be listed")

    told = run(call_mode, answering(refuse), *(call("read_file", file_path="/a.md") for _ in REFUSALS))

    assert [(error, code_of(said)) for (error, _), said in zip(REFUSALS, told, strict=True)] == REFUSALS
    assert not [said.text for said in told if "secret" in said.text]


def test_abilities_that_cannot_be_told_end_no_run(call_mode: CallMode) -> None:
    class Moody(BackendProtocol):
        asked = 0

        def capabilities(self, path: str = "/") -> Capabilities:
            self.asked += 1
            if self.asked > 1:
                raise RuntimeError("ask me later")
            return Capabilities()

    told = run(call_mode, Moody(), call("ls", path="/"), call("flood"))

    assert code_of(told[0]) == "not_supported"
    assert is_start_of_flood(told[1].text)


def test_an_interrupt_inside_a_backend_reaches_the_caller(call_mode: CallMode) -> None:
    class Asking(BackendProtocol):
        def delete(self, file_path: str) -> DeleteResult:
            return DeleteResult(path=file_path, error=None if interrupt("Sure?") else "kept")

    thread: Any = {"configurable": {"thread_id": "1"}}
    with ScriptedModel(call("delete", file_path="/a.md"), "Done.") as model:
        agent = create_deep_agent(model, backend=Asking(), checkpointer=InMemorySaver())
        asked = call_mode.invoke(agent, {"messages": "Go"}, thread)
        done = call_mode.invoke(agent, Command(resume=True), thread)

    assert [each.value for each in asked["__interrupt__"]] == ["Sure?"]
    assert done["messages"][-2].text == "Deleted /a.md"


class EveryThirdCallFails(InMemoryStore):
    """A store that has good days and bad calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        self._count()
        return super().batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        self._count()
        return await super().abatch(ops)

    def _count(self) -> None:
        self.calls += 1
        if self.calls % 3 == 0:
            raise ConnectionError(f"call {self.calls} was lost")


def test_a_store_that_fails_every_third_call_tears_no_file(call_mode: CallMode) -> None:
    store = EveryThirdCallFails()
    paths = [f"/{number}.md" for number in range(6)]
    old, new = "old " * 500, "new " * 500
    script = [
        *(call("write_file", file_path=path, content=old) for path in paths),
        *(call("read_file", file_path=path) for path in paths),
        *(call("write_file", file_path=path, content=new) for path in paths),
        *(call("edit_file", file_path=path, old_string="new new", new_string="no") for path in paths),
        *(call(tool, **TOOLS[tool]) for tool in ("ls", "glob", "grep") for _ in range(3)),
        *(call("delete", file_path=path) for path in paths),
    ]
    told = run(call_mode, StoreBackend(namespace=("files",), store=store), *script)

    failed = [each for each in told if each.status == "error"]
    assert 0 < len(failed) < len(told)
    assert all(re.search(r"\[[a-z_]+\]$", each.text) for each in failed)
    assert store.calls > len(told)
    kept = [item.value["content"] for item in InMemoryStore.search(store, ("files",), limit=100)]
    assert set(kept) <= {old, new}


def test_a_half_answer_is_shown_with_what_is_missing(call_mode: CallMode) -> None:
    class Half(BackendProtocol):
        def ls(self, path: str) -> LsResult:
            return LsResult(error="the other half did not answer", entries=[FileInfo(path="/a.md")])

    [said] = run(call_mode, Half(), call("ls", path="/"))

    assert said.text == "/a.md\n\n(incomplete: the other half did not answer)"


def test_files_in_state_are_not_waited_for_and_never_refused(call_mode: CallMode) -> None:
    script = [call("ls", path="/") for _ in range(6)]

    assert {each.status for each in run(call_mode, StateBackend(), *script, backend_timeout=0.000001)} == {
        "success"
    }
