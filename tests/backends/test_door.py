"""One call of one backend: what it does not name is left out, what it raises has a code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt

from deepagents._async import Coro, arun, run
from deepagents.backends._door import ask
from deepagents.backends._patience import Patience
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import (
    BackendProtocol,
    FileDownloadResponse,
    FileUploadResponse,
    LsResult,
    WriteResult,
)
from deepagents.errors import BackendError
from tests.conftest import CallMode


def driven(call_mode: CallMode, flow: Callable[[], Coro[Any]]) -> Any:
    return run(flow()) if call_mode.name == "sync" else asyncio.run(arun(flow()))


class Told(BackendProtocol):
    """Says which options reached it, and raises what it is told to."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    def ls(self, path: str) -> LsResult:
        if self.error:
            raise self.error
        return LsResult(entries=[])

    def write(self, file_path: str, content: str, *, expected_version: str | None = None) -> WriteResult:
        return WriteResult(path=file_path, version=expected_version)


def test_options_reach_a_method_that_names_them(call_mode: CallMode) -> None:
    asked = driven(
        call_mode, lambda: ask(Told(), "write", "/a", "A", expected_version="1", allowed=None, odd=2)
    )

    assert asked.version == "1"


def test_options_that_a_method_does_not_name_are_left_out(call_mode: CallMode) -> None:
    assert driven(call_mode, lambda: ask(Told(), "ls", "/", expected_version="1")).entries == []


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyError("/real/a"), "io_error", "ls failed: KeyError"),
        (ConnectionError("lost https://host/?key=secret"), "io_error", "ls failed: ConnectionError"),
        (BackendError("too_large", "far too large"), "too_large", "far too large"),
        (ValueError("no such sort"), "invalid_argument", "ls failed: no such sort"),
        (PermissionError(13, "x", "/real"), "permission_denied", "ls failed: Permission denied"),
        (StopIteration("x"), "io_error", "ls failed: RuntimeError"),
    ],
)
def test_what_a_backend_raises_has_a_code(
    call_mode: CallMode, error: Exception, code: str, text: str
) -> None:
    with pytest.raises(BackendError) as raised:
        driven(call_mode, lambda: ask(Told(error), "ls", "/"))

    assert raised.value.code == code
    assert raised.value.text == text


@pytest.mark.parametrize("error", [GraphInterrupt(()), KeyboardInterrupt()])
def test_interrupts_pass(call_mode: CallMode, error: BaseException) -> None:
    with pytest.raises(type(error)):
        driven(call_mode, lambda: ask(Told(error), "ls", "/"))


def test_a_method_that_is_not_there_is_an_error(call_mode: CallMode) -> None:
    with pytest.raises(BackendError, match="AttributeError"):
        driven(call_mode, lambda: ask(Told(), "execute", "ls"))


def test_a_backend_that_cannot_tell_its_abilities_is_asked_in_bounded_time(call_mode: CallMode) -> None:
    class Moody(Told):
        def capabilities(self, path: str = "/") -> Capabilities:
            raise RuntimeError("ask me later")

    assert driven(call_mode, lambda: ask(Moody(), "ls", "/", patience=Patience(30))).entries == []


def test_a_wait_in_the_abilities_of_a_backend_is_not_swallowed(call_mode: CallMode) -> None:
    class Waiting(Told):
        def capabilities(self, path: str = "/") -> Capabilities:
            raise GraphInterrupt(())

    with pytest.raises(GraphInterrupt):
        driven(call_mode, lambda: ask(Waiting(), "ls", "/", patience=Patience(30)))


@pytest.mark.parametrize(
    ("method", "given", "place"),
    [
        ("ls", ["/d"], "/d"),
        ("read", ["/a", 0, 1], "/a"),
        ("grep", ["x", "/d", None], "/d"),
        ("grep", ["x", None, None], "/"),
        ("glob", ["*", "/d"], "/d"),
        ("upload_files", [[("/a", b"")]], "/a"),
        ("download_files", [["/a"]], "/a"),
        ("download_files", [["/a", "/b"]], "/"),
        ("download_files", [[]], "/"),
    ],
)
def test_abilities_are_those_of_the_place_that_is_asked_about(
    call_mode: CallMode, method: str, given: list[Any], place: str
) -> None:
    asked: list[str] = []

    class Placed(BackendProtocol):
        def capabilities(self, path: str = "/") -> Capabilities:
            asked.append(path)
            return Capabilities(in_process=True)

    with suppress(BackendError):
        driven(call_mode, lambda: ask(Placed(), method, *given, patience=Patience(30)))

    assert asked == [place]


class Moving(BackendProtocol):
    """Answers a transfer with what it is told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def upload_files(self, files: list[tuple[str, bytes]]) -> Any:
        return self.answer

    def download_files(self, paths: list[str]) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", [None, "done", [None], [object()]])
@pytest.mark.parametrize(("method", "files"), [("upload_files", [("/a", b"A")]), ("download_files", ["/a"])])
def test_a_transfer_that_answers_with_something_else_is_an_error(
    call_mode: CallMode, method: str, files: Any, answer: Any
) -> None:
    with pytest.raises(BackendError, match="not with a list of File(Upload|Download)Response") as raised:
        driven(call_mode, lambda: ask(Moving(answer), method, files))

    assert raised.value.code == "io_error"


def test_files_that_a_transfer_leaves_out_are_told_of(call_mode: CallMode) -> None:
    up = driven(call_mode, lambda: ask(Moving([]), "upload_files", [("/a", b"A")]))
    answer = [FileDownloadResponse("/a", b"A")]
    down = driven(call_mode, lambda: ask(Moving(answer), "download_files", ["/a", "/b"]))
    more = driven(call_mode, lambda: ask(Moving(answer * 3), "download_files", ["/a", "/b"]))

    assert up == [FileUploadResponse("/a", error="io_error: the backend gave no answer for this file")]
    assert [each.path for each in down] == ["/a", "/b"]
    assert [each.error is None for each in down] == [True, False]
    assert len(more) == 2
