"""What a backend gets for nothing from the protocol."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from deepagents.backends.protocol import (
    BackendProtocol,
    SandboxBackendProtocol,
    cap_matches,
    execute_accepts_timeout,
)
from deepagents.backends.results import (
    DeleteResult,
    ExecuteResponse,
    GrepMatch,
    GrepResult,
    LsResult,
    WriteResult,
)
from tests.conftest import CallMode

CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("ls", ("/",)),
    ("read", ("/a",)),
    ("grep", ("x",)),
    ("glob", ("*",)),
    ("write", ("/a", "x")),
    ("edit", ("/a", "x", "y")),
    ("delete", ("/a",)),
    ("upload_files", ([],)),
    ("download_files", ([],)),
]


class Bare(BackendProtocol):
    pass


class BareSandbox(SandboxBackendProtocol):
    pass


@pytest.mark.parametrize(("method", "args"), CALLS)
def test_what_is_not_overridden_says_so(call_mode: CallMode, method: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(NotImplementedError, match=rf"Bare does not implement {method}\(\)"):
        call_mode.call(Bare(), method, *args)


def test_a_bare_sandbox_says_what_it_lacks(call_mode: CallMode) -> None:
    with pytest.raises(NotImplementedError, match=r"BareSandbox does not implement execute\(\)"):
        call_mode.call(BareSandbox(), "execute", "ls")
    with pytest.raises(NotImplementedError, match="id"):
        _ = BareSandbox().id


class Small(BackendProtocol):
    seen: ContextVar[str] = ContextVar("seen", default="nothing")

    def ls(self, path: str) -> LsResult:
        return LsResult(error=f"{threading.current_thread().name} {self.seen.get()}")

    def write(self, file_path: str, content: str, *, expected_version: str | None = None) -> WriteResult:
        return WriteResult(path=file_path, version=expected_version)

    def delete(self, file_path: str) -> DeleteResult:
        return DeleteResult(path=file_path)


def older_grep(
    self: BackendProtocol, pattern: str, path: str | None = None, glob: str | None = None
) -> GrepResult:
    return GrepResult(matches=matches(5))


def matches(count: int) -> list[GrepMatch]:
    return [{"path": "/a", "line": line, "text": "x"} for line in range(1, count + 1)]


def test_awaited_work_runs_in_a_thread_with_its_context() -> None:
    async def look() -> LsResult:
        Small.seen.set("context")
        return await Small().als("/")

    found = asyncio.run(look()).error or ""
    assert found.endswith("context")
    assert not found.startswith("MainThread")


def test_options_reach_the_blocking_twin(call_mode: CallMode) -> None:
    assert call_mode.call(Small(), "write", "/a", "x", expected_version="v").version == "v"


def test_abilities_follow_from_what_is_overridden() -> None:
    assert (Bare().capabilities().delete, Bare().capabilities().execute) == (False, False)
    assert Small().capabilities().delete
    assert BareSandbox().capabilities().execute
    assert Bare().capabilities().artifacts_root == "/"


def test_an_awaited_search_is_capped_even_where_the_backend_knows_no_cap() -> None:
    older: Any = type("Older", (BackendProtocol,), {"grep": older_grep})()

    found = asyncio.run(older.agrep("x", max_count=2))

    assert (len(found.matches), found.truncated) == (2, True)
    assert not asyncio.run(older.agrep("x", max_count=5)).truncated


def late_grep(
    self: BackendProtocol, pattern: str, path: str | None = None, glob: str | None = None
) -> GrepResult:
    raise TimeoutError


def test_a_search_that_takes_too_long_is_a_result() -> None:
    late: Any = type("Late", (BackendProtocol,), {"grep": late_grep})()

    found = asyncio.run(late.agrep("needle"))

    assert found.code == "timeout"
    assert "'needle' timed out" in found.error


def test_a_result_within_the_cap_is_the_same_object() -> None:
    found = GrepResult(matches=matches(2))
    assert cap_matches(found, 2) is found
    assert cap_matches(found, None) is found
    nothing = GrepResult(error="x")
    assert cap_matches(nothing, 0) is nothing


class Timed(SandboxBackendProtocol):
    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return ExecuteResponse(f"{command} {timeout}")


class Untimed(SandboxBackendProtocol):
    def execute(self, command: str, **options: Any) -> ExecuteResponse:
        return ExecuteResponse(f"{command} {options}")


def test_a_time_limit_goes_where_it_is_named() -> None:
    assert execute_accepts_timeout(Timed)
    assert not execute_accepts_timeout(Untimed)
    assert asyncio.run(Timed().aexecute("ls", timeout=5)).output == "ls 5"
    assert asyncio.run(Untimed().aexecute("ls", timeout=5)).output == "ls {}"
