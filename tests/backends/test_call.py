"""One call of one backend: how its methods are called, and what their failures become."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt

from deepagents import create_deep_agent
from deepagents._async import Coro, sync_and_async
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.guard import CallRights
from deepagents.backends.handle import FileCalls, open_backend
from deepagents.backends.protocol import (
    BackendProtocol,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.errors import RunConfigError, ToolFailure
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode


class Files:
    """The files of a backend, as a tool calls them."""

    def __init__(self, backend: BackendProtocol, seconds: float | None = None) -> None:
        self._files = open_backend(backend, seconds).files(None)

    async def _do(self, work: Callable[[FileCalls], Coro[Any]]) -> Any:
        return await work(self._files)

    do, ado = sync_and_async(_do)


def do(call_mode: CallMode, backend: BackendProtocol, work: Callable[[FileCalls], Awaitable[Any]]) -> Any:
    return call_mode.call(Files(backend), "do", work)


Loose: Any = BackendProtocol
"""The protocol without its types, for methods with parameters of their own."""


class ByKeyword(Loose):
    """Takes what the documents give by name, in an order of its own."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def read(self, file_path: str, *, limit: int = 0, offset: int = 0) -> ReadResult:
        self.asked.append(("read", file_path, offset, limit))
        return ReadResult(file_data={"content": "text", "encoding": "utf-8"})

    def edit(self, file_path: str, old_string: str, new_string: str, **options: Any) -> Any:
        self.asked.append(("edit", file_path, old_string, new_string, options["replace_all"]))
        return WriteResult(path=file_path)

    def glob(self, pattern: str, **options: Any) -> GlobResult:
        self.asked.append(("glob", pattern, options["path"]))
        return GlobResult(matches=[])

    def grep(self, pattern: str, glob: str | None = None, path: str | None = None) -> GrepResult:
        self.asked.append(("grep", pattern, path, glob))
        return GrepResult(matches=[])


class AwaitingByKeyword(ByKeyword):
    """The same in the awaiting form alone."""

    async def aread(self, file_path: str, *, limit: int = 0, offset: int = 0) -> ReadResult:
        return self.read(file_path, limit=limit, offset=offset)

    async def aglob(self, pattern: str, **options: Any) -> GlobResult:
        return self.glob(pattern, **options)

    async def agrep(self, pattern: str, glob: str | None = None, path: str | None = None) -> GrepResult:
        return self.grep(pattern, glob=glob, path=path)


@pytest.mark.parametrize("routed", [False, True])
def test_arguments_are_given_by_name(call_mode: CallMode, routed: bool) -> None:
    asked_by_name(call_mode, ByKeyword(), routed)


@pytest.mark.parametrize("call_mode", ["async"], indirect=True)
@pytest.mark.parametrize("routed", [False, True])
def test_arguments_of_awaiting_methods_are_given_by_name(call_mode: CallMode, routed: bool) -> None:
    asked_by_name(call_mode, AwaitingByKeyword(), routed)


def asked_by_name(call_mode: CallMode, backend: Any, routed: bool) -> None:
    calls = [
        call("read_file", file_path="/d/a", offset=3, limit=5),
        call("edit_file", file_path="/d/a", old_string="x", new_string="y", replace_all=True),
        call("glob", pattern="*.py", path="/d/src"),
        call("grep", pattern="x", path="/d/src", glob="*.py"),
    ]
    given: BackendProtocol = CompositeBackend(StateBackend(), {"/d": backend}) if routed else backend
    with ScriptedModel(*calls, "Done.") as model:
        call_mode.invoke(create_deep_agent(model, backend=given), {"messages": "Go"})

    top = "" if routed else "/d"
    assert backend.asked == [
        ("read", f"{top}/a", 3, 5),
        ("edit", f"{top}/a", "x", "y", True),
        ("glob", "*.py", f"{top}/src"),
        ("grep", "x", f"{top}/src", "*.py"),
    ]


class Renamed(Loose):
    """Names its parameters otherwise; the protocol's order is all that is known of them."""

    def read(self, name: str, start: int, count: int) -> ReadResult:
        return ReadResult(error=f"{name} {start} {count}")

    def grep(self, text: str, where: Any = None, names: Any = None) -> Any:
        return GrepResult(error=f"{text} {where} {names}")


def test_parameters_of_other_names_are_given_by_position(call_mode: CallMode) -> None:
    with pytest.raises(ToolFailure, match="/a 3 5"):
        do(call_mode, Renamed(), lambda files: files.read("/a", 3, 5))
    with pytest.raises(ToolFailure, match=r"x /d \*\.py"):
        do(call_mode, Renamed(), lambda files: files.grep("x", "/d", "*.py", max_count=9))


def newer_write(self: Any, file_path: str, content: str, **options: Any) -> WriteResult:
    return FilesystemBackend.write(self, file_path, content.upper())


async def newer_awrite(self: Any, file_path: str, content: str, **options: Any) -> WriteResult:
    return await FilesystemBackend.awrite(self, file_path, content.upper())


async def older_awrite(self: Any, file_path: str, content: str, **options: Any) -> WriteResult:
    raise AssertionError("the older definition was called")


def test_a_newer_write_serves_both_kinds_of_callers(call_mode: CallMode, tmp_path: Path) -> None:
    older: Any = type("Older", (FilesystemBackend,), {"awrite": older_awrite})
    newer: Any = type("Newer", (older,), {"write": newer_write})
    with ScriptedModel(call("write_file", file_path="/a", content="one"), "Done.") as model:
        call_mode.invoke(create_deep_agent(model, backend=newer(tmp_path)), {"messages": "Go"})

    assert (tmp_path / "a").read_text() == "ONE"


def test_a_newer_awrite_is_not_passed_by(call_mode: CallMode, tmp_path: Path) -> None:
    newer: Any = type("Newer", (FilesystemBackend,), {"awrite": newer_awrite})
    model = ScriptedModel(call("write_file", file_path="/a", content="one"), "Done.")
    agent = create_deep_agent(model, backend=newer(tmp_path))
    if call_mode.name == "async":
        call_mode.invoke(agent, {"messages": "Go"})
        assert (tmp_path / "a").read_text() == "ONE"
    else:
        with pytest.raises(RunConfigError, match=r"only awrite\(\): run the agent with ainvoke\(\)"):
            agent.invoke({"messages": "Go"})
        assert not (tmp_path / "a").exists()


class Raising(BackendProtocol):
    """Raises what it is given."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def ls(self, path: str) -> LsResult:
        raise self.error


@pytest.mark.parametrize("error", [GraphInterrupt(()), KeyboardInterrupt()])
def test_interrupts_pass(call_mode: CallMode, error: BaseException) -> None:
    with pytest.raises(type(error)):
        do(call_mode, Raising(error), lambda files: files.ls("/"))


def test_an_interrupt_passes_where_a_backend_says_what_it_can_do() -> None:
    class Asking(StateBackend):
        def capabilities(self, path: str = "/") -> Capabilities:
            if path == "/":
                return super().capabilities(path)
            raise GraphInterrupt(())

    with pytest.raises(GraphInterrupt):
        open_backend(Asking()).capabilities("/a")


class AskingWhere(BackendProtocol):
    """Asks a person before it says where a path leads."""

    def real_path(self, path: str) -> str:
        raise GraphInterrupt(())

    def ls(self, path: str) -> LsResult:
        return LsResult(entries=[{"path": "/a", "is_dir": False}])


def test_an_interrupt_passes_where_rules_ask_where_a_path_leads(call_mode: CallMode) -> None:
    rules = Rules([FilesystemPermission(operations=["read"], paths=["/secrets/**"], mode="deny")])
    files = open_backend(AskingWhere()).files(None, CallRights(rules))

    class Listing:
        async def _ls(self) -> LsResult:
            return await files.ls("/")

        ls, als = sync_and_async(_ls)

    with pytest.raises(GraphInterrupt):
        call_mode.call(Listing(), "ls")


class Mirroring(StateBackend):
    """Notes where it writes a copy elsewhere, which takes time."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[threading.Thread] = []

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        self.threads.append(threading.current_thread())
        return super().write(file_path, content, **options)


class InMemory(Mirroring):
    """Says itself that all this answers from memory."""

    def capabilities(self, path: str = "/") -> Capabilities:
        return super().capabilities(path)


@pytest.mark.parametrize("kind", [Mirroring, InMemory])
@pytest.mark.parametrize("routed", [False, True])
async def test_a_subclass_of_files_in_memory_does_not_stop_the_event_loop(
    kind: type[Mirroring], routed: bool
) -> None:
    backend = kind()
    script = [call("write_file", file_path="/a", content="one"), call("read_file", file_path="/a"), "Done."]
    with ScriptedModel(*script) as model:
        given = CompositeBackend(backend, {}) if routed else backend
        result = await create_deep_agent(model, backend=given).ainvoke({"messages": "Go"})

    assert "one" in result["messages"][-2].text
    assert (backend.threads == [threading.current_thread()]) == (kind is InMemory)


class Moving(BackendProtocol):
    """Answers every transfer in the same way."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def upload_files(self, files: list[tuple[str, bytes]]) -> Any:
        return self.answer

    def download_files(self, paths: list[str]) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        ("file_not_found", "file_not_found", "File '/a' not found"),
        ("permission_denied", "permission_denied", "File '/a': permission denied"),
        ("is_directory", "is_directory", "File '/a' is a directory"),
        ("invalid_path", "invalid_path", "File '/a' has a path that cannot be used"),
        ("the disk is full", "io_error", "File '/a': the disk is full"),
    ],
)
def test_a_failed_transfer_is_a_sentence(call_mode: CallMode, error: Any, code: str, sentence: str) -> None:
    moving = Moving([FileDownloadResponse("/a", error=error)])

    with pytest.raises(ToolFailure, match=sentence) as raised:
        do(call_mode, moving, lambda files: files.download("/a"))

    assert raised.value.code == code


def upload(files: FileCalls) -> Coro[Any]:
    return files.upload_all([("/a", b"A")])


def download(files: FileCalls) -> Coro[Any]:
    return files.download_each(["/a", "/b"])


@pytest.mark.parametrize("answer", [None, "done", [None], [object()]])
@pytest.mark.parametrize("work", [upload, download])
def test_a_transfer_that_answers_with_something_else_is_an_error(
    call_mode: CallMode, work: Any, answer: Any
) -> None:
    with pytest.raises(ToolFailure, match="not with a list of File(Upload|Download)Response") as raised:
        do(call_mode, Moving(answer), work)

    assert raised.value.code == "io_error"


def test_files_that_a_transfer_leaves_out_have_an_error(call_mode: CallMode) -> None:
    answer = [FileDownloadResponse("/a", b"A")]

    assert do(call_mode, Moving(list[FileUploadResponse]()), upload) == [False]
    found = do(call_mode, Moving(answer), download)
    assert [(each.path, each.error is None) for each in found] == [("/a", True), ("/b", False)]
    assert len(do(call_mode, Moving(answer * 3), download)) == 2
