"""Classes that users subclass claim no ordinary attribute name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from deepagents import create_deep_agent
from deepagents.backends import (
    CompositeBackend,
    FilesystemBackend,
    LocalShellBackend,
    StateBackend,
    StoreBackend,
)
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.handle import FileCalls
from deepagents.backends.protocol import BackendProtocol, ExecuteResponse, SandboxBackendProtocol
from deepagents.backends.results import ExecuteOffloadResult, WriteResult
from deepagents.backends.sandbox import BaseSandbox
from deepagents.testing import ScriptedModel, call
from tests.backends.sandboxes import DirectorySandbox
from tests.backends.test_call import Files
from tests.conftest import CallMode

ORDINARY = (
    "root", "path", "name", "client", "timeout", "env", "config", "cwd", "workdir", "directory", "session",
    "sandbox", "container", "api_key", "url", "options", "logger", "lock", "process", "files", "prefix",
    "commands", "state", "settings", "user", "host", "port", "image", "closed", "connection",
    "_root", "_path", "_name", "_client", "_timeout", "_config", "_session", "_sandbox", "_files", "_lock",
    "_workdir", "_container", "_prefix",
)  # fmt: skip


class Provider(DirectorySandbox):
    """A provider's sandbox that keeps what it needs under ordinary names."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        for name in ORDINARY:
            if name not in ("directory", "env", "commands"):
                setattr(self, name, object())


def test_a_sandbox_may_use_ordinary_names_for_its_own(tmp_path: Path) -> None:
    box, file = Provider(tmp_path), f"{tmp_path}/a.txt"

    assert box.write(file, "one\n").error is None
    assert box.read(file).file_data == box.read(file).file_data
    assert box.edit(file, "one", "two").error is None
    assert [entry["path"] for entry in box.ls(str(tmp_path)).entries or ()] == [file]
    assert [entry["path"] for entry in box.glob("*.txt", str(tmp_path)).matches or ()] == [file]
    assert [match["text"] for match in box.grep("two", str(tmp_path)).matches or ()] == ["two"]
    assert box.delete(file).error is None


@pytest.mark.parametrize("base", [BackendProtocol, SandboxBackendProtocol, BaseSandbox])
def test_a_base_class_claims_no_ordinary_name(base: type) -> None:
    assert [name for name in ORDINARY if hasattr(base, name)] == []


@pytest.mark.parametrize(
    "make_backend",
    [FilesystemBackend, LocalShellBackend, lambda path: CompositeBackend(FilesystemBackend(path), {})],
    ids=["disk", "shell", "composite"],
)
def test_a_backend_works_when_a_subclass_sets_ordinary_names(
    make_backend: Callable[[Path], BackendProtocol], tmp_path: Path
) -> None:
    files = make_backend(tmp_path)
    for name in ORDINARY:
        if name != "cwd":  # The documented one.
            setattr(files, name, object())

    assert files.write("/a.txt", "one\n").error is None
    assert files.edit("/a.txt", "one", "two").error is None
    assert [match["text"] for match in files.grep("two").matches or ()] == ["two"]
    assert [entry["path"] for entry in files.glob("*.txt").matches or ()] == ["/a.txt"]
    assert files.delete("/a.txt").error is None


class Locked(StoreBackend):
    """Writes nothing, and has said so in the blocking form alone."""

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        return WriteResult(error="locked", code="permission_denied")


class Logged(StoreBackend):
    """Notes each write, in both forms."""

    def __init__(self) -> None:
        super().__init__(store=InMemoryStore(), namespace=("files",))
        self.noted: list[str] = []

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        self.noted.append("blocking")
        return super().write(file_path, content, **options)

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        self.noted.append("awaiting")
        return await super().awrite(file_path, content, **options)


async def test_awaiting_goes_by_the_blocking_method_that_a_subclass_wrote_anew() -> None:
    locked = Locked(store=InMemoryStore(), namespace=("files",))
    logged = Logged()

    assert (await locked.awrite("/a", "x")).error == "locked"
    assert (await logged.awrite("/a", "x")).error is None
    assert logged.noted == ["awaiting"]


class Refusing(CompositeBackend):
    """Runs no command that a model asks for."""

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return ExecuteResponse(f"refused {command}", 1)


class Remote(Refusing):
    """Answers commands itself, whatever its default can do."""

    def capabilities(self, path: str = "/") -> Capabilities:
        return replace(super().capabilities(path), execute=True)


class Capturing(DirectorySandbox):
    """Keeps long output in a file."""

    enable_capture_offload = True


class RefusingCapture(CompositeBackend):
    """Runs no command whose output would be kept."""

    def execute_with_offload(
        self,
        command: str,
        capture_path: str,
        *,
        max_inline_bytes: int,
        max_capture_bytes: int | None = None,
        timeout: int | None = None,
    ) -> ExecuteOffloadResult:
        return ExecuteOffloadResult(False, ExecuteResponse(f"refused {command}", 1))


def run_command(call_mode: CallMode, backend: BackendProtocol) -> str:
    with ScriptedModel(call("execute", command="echo ran > proof"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, backend=backend), {"messages": "Go"})
    return result["messages"][-2].text


@pytest.mark.parametrize(
    ("kind", "make_default"),
    [
        (Refusing, LocalShellBackend),
        (Refusing, Capturing),
        (RefusingCapture, Capturing),
        (Remote, FilesystemBackend),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_no_command_goes_past_what_a_subclass_runs_it_with(
    call_mode: CallMode,
    kind: type[CompositeBackend],
    make_default: Callable[[Path], BackendProtocol],
    nested: bool,
    tmp_path: Path,
) -> None:
    backend = kind(make_default(tmp_path), {"/memories/": StateBackend()})

    answer = run_command(call_mode, CompositeBackend(backend, {}) if nested else backend)

    assert answer.startswith("refused echo ran")
    assert not (tmp_path / "proof").exists()


class Linked(CompositeBackend):
    """Knows a link of its own."""

    def real_path(self, path: str) -> str:
        return "/secret/a" if path == "/public" else super().real_path(path)


def test_paths_lead_where_a_subclass_says(call_mode: CallMode, tmp_path: Path) -> None:
    async def resolve(files: FileCalls) -> list[str]:
        return [await files.resolve("/public"), await files.real_path("/public"), await files.resolve("/b")]

    found = call_mode.call(Files(Linked(FilesystemBackend(tmp_path), {})), "do", resolve)

    assert found == ["/secret/a", "/secret/a", "/b"]


def test_a_method_that_was_replaced_on_an_object_is_called(tmp_path: Path) -> None:
    backend: Any = FilesystemBackend(tmp_path)

    def write(file_path: str, content: str, **options: Any) -> WriteResult:
        return FilesystemBackend.write(backend, file_path, content.upper(), **options)

    backend.write = write
    Files(backend).do(lambda files: files.write("/a", "one", None))

    assert (tmp_path / "a").read_text() == "ONE"
