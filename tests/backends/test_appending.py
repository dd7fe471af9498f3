"""Adding to the end of a file through `FileCalls`, whatever the backend can."""

from __future__ import annotations

import os
import random
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from deepagents import FilesystemPermission
from deepagents._async import Coro, run, sync_and_async
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends.filedata import create_file_data
from deepagents.backends.guard import CallRights
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import BackendProtocol, FileDownloadResponse, FileUploadResponse
from deepagents.backends.results import ReadResult, WriteResult
from deepagents.backends.state import reduce_files
from deepagents.errors import ToolFailure
from deepagents.middleware.filesystem.state import FilesystemState
from deepagents.permissions import Rules
from tests.backends.flat_backend import FlatBackend
from tests.backends.processes import again_after_each_kill, ask, finish, listen, start, wait_until_ready
from tests.backends.sandboxes import rooted
from tests.conftest import CallMode

KILLS = 20
ADD_FOR_EVER = again_after_each_kill(
    """
from deepagents.backends.filesystem import FilesystemBackend
""",
    """
backend = FilesystemBackend(sys.argv[1])
while True:
    backend.append("/log.txt", "x" * 300_000 + chr(10))
""",
)
ADD_TOO_MUCH = """
import resource, sys
from deepagents.backends.filesystem import FilesystemBackend
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
backend = FilesystemBackend(sys.argv[1])
for path in ("/old.txt", "/new.txt"):
    result = backend.append(path, "x" * 200_000)
    print(result.code, result.error)
"""
ADD_TOO_MUCH_IN_A_SANDBOX = """
import resource, sys
from pathlib import Path
from tests.backends.sandboxes import rooted
backend = rooted(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
result = backend.append("/old.txt", "x" * 50_000)
print(result.code, result.error)
"""
THREAD: Any = {"configurable": {"thread_id": "one"}}


class Doing:
    """Runs a flow in either call_mode."""

    async def _flow(self, flow: Coro[Any]) -> Any:
        return await flow

    do, ado = sync_and_async(_flow)


def do(call_mode: CallMode, flow: Coro[Any]) -> Any:
    return call_mode.call(Doing(), "do", flow)


class Foreign(BackendProtocol):
    """A backend of whole files in memory that cannot append."""

    def __init__(self, **files: bytes) -> None:
        self.files = {f"/{name}": content for name, content in files.items()}
        self.full = False

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [
            FileDownloadResponse(each, self.files[each])
            if each in self.files
            else FileDownloadResponse(each, error="file_not_found")
            for each in paths
        ]

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        if self.full:
            return [FileUploadResponse(path, "no room") for path, _ in files]
        self.files.update(files)
        return [FileUploadResponse(path) for path, _ in files]


class Careful(FilesystemBackend):
    """Files on disk, some of which a subclass does not let be written."""

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        return WriteResult(error="not this way", code="permission_denied")

    def upload_files(self, files: list[tuple[str, bytes]], **options: Any) -> list[FileUploadResponse]:
        return [FileUploadResponse(path, "permission_denied") for path, _ in files]


def test_a_backend_that_cannot_append_gets_the_file_whole(call_mode: CallMode) -> None:
    backend = Foreign(log=b"one\r\n")

    do(call_mode, open_backend(backend).files(None).append("/log", "two\n"))
    do(call_mode, open_backend(backend).files(None).append("/new", "first\n"))

    assert backend.files == {"/log": b"one\r\ntwo\n", "/new": b"first\n"}


def test_a_backend_of_the_oldest_kind_reads_and_writes(call_mode: CallMode) -> None:
    backend = FlatBackend({"/log": "one\n"})

    do(call_mode, open_backend(backend).files(None).append("/log", "two\n"))
    do(call_mode, open_backend(backend).files(None).append("/new", "first\n"))

    assert backend.files == {"/log": "one\ntwo\n", "/new": "first\n"}


class Oldest(BackendProtocol):
    """A backend that reads and writes text, or what should be base64."""

    def __init__(self, file: Any) -> None:
        self.file: Any = file

    def read(self, file_path: str, offset: int = 0, limit: int = 2_000) -> ReadResult:
        missing = ReadResult(error="not there", code="file_not_found")
        return missing if self.file is None else ReadResult(file_data=self.file)

    def write(self, file_path: str, content: str) -> WriteResult:
        self.file = create_file_data(content)
        return WriteResult(path=file_path)


@pytest.mark.parametrize(
    ("file", "added", "code"),
    [
        (None, "half \ud83d", "invalid_encoding"),
        ({"content": "gIE=", "encoding": "base64"}, "text", "invalid_encoding"),
        ({"content": "!!!", "encoding": "base64"}, "text", "io_error"),
        ({"content": 7, "encoding": "utf-8"}, "text", "io_error"),
    ],
)
def test_what_no_text_can_hold_is_refused_by_a_backend_of_text(
    call_mode: CallMode, file: Any, added: Any, code: str
) -> None:
    backend = Oldest(file)

    with pytest.raises(ToolFailure, match="/log") as failed:
        do(call_mode, open_backend(backend).files(None).append("/log", added))

    assert failed.value.code == code
    assert backend.file == file


def test_what_cannot_be_put_back_is_said(call_mode: CallMode) -> None:
    backend = Foreign(log=b"one\n")
    backend.full = True

    with pytest.raises(ToolFailure, match="no room") as failed:
        do(call_mode, open_backend(backend).files(None).append("/log", "two\n"))

    assert failed.value.code == "io_error"
    assert backend.files == {"/log": b"one\n"}


def test_an_inherited_append_does_not_go_round_what_a_subclass_forbids(
    call_mode: CallMode, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("one\n")

    with pytest.raises(ToolFailure) as failed:
        do(call_mode, open_backend(Careful(tmp_path)).files(None).append("/log", "two\n"))

    assert failed.value.code == "permission_denied"
    assert (tmp_path / "log").read_text() == "one\n"


@pytest.mark.parametrize("where", ["disk", "store", "sandbox", "route", "foreign"])
def test_half_characters_are_kept(call_mode: CallMode, tmp_path: Path, where: str) -> None:
    backends: dict[str, BackendProtocol] = {
        "disk": FilesystemBackend(tmp_path),
        "store": StoreBackend(store=InMemoryStore(), namespace=("a",)),
        "sandbox": rooted(tmp_path),
        "route": CompositeBackend(FilesystemBackend(tmp_path), {"/far/": Foreign()}),
        "foreign": Foreign(),
    }
    files = open_backend(backends[where]).files(None)
    path = "/far/log" if where == "route" else "/log"

    for text in ("ü\n", "a\ud800b\n", "c\n"):
        do(call_mode, files.append(path, text))

    assert do(call_mode, files.download(path)).decode("utf-8", "surrogatepass") == "ü\na\ud800b\nc\n"


def test_a_route_appends_as_its_backend_can(call_mode: CallMode, tmp_path: Path) -> None:
    foreign = Foreign(log=b"one\n")
    tree = CompositeBackend(FilesystemBackend(tmp_path), {"/far/": foreign})

    for path in ("/far/log", "/near/log"):
        done = do(call_mode, open_backend(tree).files(None).append(path, "two\n"))
        assert done.path == path

    assert foreign.files == {"/log": b"one\ntwo\n"}
    assert (tmp_path / "near" / "log").read_text() == "two\n"


@pytest.mark.parametrize("kind", ["native", "whole"])
def test_rules_bind_an_append(call_mode: CallMode, tmp_path: Path, kind: Literal["native", "whole"]) -> None:
    rules = Rules([FilesystemPermission(operations=["write"], paths=["/secret/**"], mode="deny")])
    (tmp_path / "secret").mkdir()
    (tmp_path / "link").symlink_to("secret")
    backend = FilesystemBackend(tmp_path) if kind == "native" else Foreign()
    files = open_backend(backend).files(None, CallRights(rules))

    for path in ("/secret/log", *(["/link/log"] if kind == "native" else [])):
        with pytest.raises(ToolFailure) as failed:
            do(call_mode, files.append(path, "x"))
        assert failed.value.code == "permission_denied"
    do(call_mode, files.append("/log", "x"))

    assert not list((tmp_path / "secret").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="no permission bits there")
def test_a_file_stays_the_same_file_with_its_bits(call_mode: CallMode, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\n")
    log.chmod(0o640)
    before = log.stat()

    do(call_mode, open_backend(FilesystemBackend(tmp_path)).files(None).append("/log", "two\n"))

    assert log.read_text() == "one\ntwo\n"
    assert (log.stat().st_ino, stat.S_IMODE(log.stat().st_mode)) == (before.st_ino, 0o640)


def test_no_link_leads_an_append_out(call_mode: CallMode, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "out").symlink_to(outside)
    for backend in (FilesystemBackend(tmp_path / "root"), rooted(tmp_path / "root")):
        with pytest.raises(ToolFailure) as failed:
            do(call_mode, open_backend(backend).files(None).append("/out", "x"))
        assert failed.value.code == "invalid_path"
    assert outside.read_text() == "mine\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file sizes there")
def test_what_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")

    output = finish(start(ADD_TOO_MUCH, tmp_path))

    assert [line.split()[0] for line in output.splitlines()] == ["io_error"] * 2
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"old.txt": "old"}


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of that kind there")
def test_what_does_not_fit_in_a_sandbox_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("o" * 90_000)

    output = finish(start(ADD_TOO_MUCH_IN_A_SANDBOX, tmp_path))

    assert output.startswith("io_error")
    assert (tmp_path / "old.txt").read_text() == "o" * 90_000


@pytest.mark.skipif(sys.platform == "win32", reason="a process is not killed like that there")
def test_a_writer_killed_at_any_moment_leaves_all_that_was_there(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("begin\n")
    moment = random.Random(7)
    writers = start(ADD_FOR_EVER, tmp_path)
    wait_until_ready(writers)
    for _ in range(KILLS):
        before = log.read_bytes()
        pid = int(ask(writers))
        time.sleep(moment.uniform(0, 0.02))
        os.kill(pid, signal.SIGKILL)
        assert listen(writers) == "gone"
        after = log.read_bytes()
        assert after.startswith(before)
        assert after[len(before) :].strip(b"x\n") == b""
    finish(writers)


def node_that(appends: list[str]) -> Any:
    def node(state: FilesystemState) -> dict[str, Any]:
        for text in appends:
            assert StateBackend().append("/log.txt", text).error is None
        return {}

    return node


def test_checkpoints_grow_by_what_is_added() -> None:
    saver = InMemorySaver()
    graph: Any = StateGraph(FilesystemState)
    graph.add_node("work", node_that(["x" * 999 + "\n"])).add_edge(START, "work")
    agent = graph.compile(checkpointer=saver)

    for _ in range(30):
        agent.invoke({"messages": []}, THREAD)

    kept = sum(len(value) for writes in saver.writes.values() for *_, (_, value), _ in writes.values())
    kept += sum(len(value) for _, value in saver.blobs.values())
    assert len(agent.get_state(THREAD).values["files"]["/log.txt"]["content"]) == 30_000
    assert 30_000 <= kept < 90_000


def test_two_tasks_that_append_at_the_same_time_lose_nothing() -> None:
    graph: Any = StateGraph(FilesystemState)
    for name, texts in (("one", ["a\n", "b\n"]), ("two", ["c\n"])):
        graph.add_node(name, node_that(texts)).add_edge(START, name)

    files = graph.compile().invoke({"messages": [], "files": {"/log.txt": {"content": "begin\n"}}})["files"]

    assert files["/log.txt"]["content"] in ("begin\na\nb\nc\n", "begin\nc\na\nb\n")


def test_a_whole_write_beside_an_append_keeps_both() -> None:
    old = {"content": "one\ntwo\nthree\n", "encoding": "utf-8"}
    write = {"/log": {"content": "1\ntwo\nthree\n", "encoding": "utf-8", "base": old["content"]}}
    append = {"/log": {"append": "four\n", "modified_at": "later"}}

    for order in ([write, append], [append, write]):
        merged = reduce_files({"/log": old}, order)
        assert merged["/log"]["content"] == "1\ntwo\nthree\nfour\n"


def test_an_append_outlives_a_deletion_of_what_was_there_before() -> None:
    assert reduce_files({}, [{"/a": {"append": "x"}}])["/a"]["content"] == "x"
    files = reduce_files(
        {"/a": {"content": "x", "encoding": "utf-8"}},
        [{"/a": {"append": "y", "modified_at": "later"}}, {"/a": {"delete": "0" * 16}}],
    )
    assert files["/a"]["content"] == "xy"
    assert files["/a"]["modified_at"] == "later"


def test_a_flow_without_a_backend_of_its_own_says_so() -> None:
    with pytest.raises(ToolFailure) as failed:
        run(open_backend(BackendProtocol()).files(None).append("/a", "x"))
    assert failed.value.code == "not_supported"
