"""Backends written for earlier versions serve an agent, alone and on a route, with one warning each."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from deepagents import create_deep_agent
from deepagents.backends import BackendProtocol, FilesystemBackend, StateBackend
from deepagents.backends.composite import CompositeBackend
from deepagents.backends.protocol import (
    EditResult,
    ExecuteResponse,
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)
from deepagents.errors import RunConfigError
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.tools.bench import code_of

FILES = {"/a.md": "one\ntwo", "/b.md": "three"}


@contextmanager
def warned(about: str, times: int = 1) -> Generator[None]:
    with pytest.warns(DeprecationWarning, match=about) as seen:
        yield
    assert [each.filename for each in seen] == [__file__] * times


class Place:
    """Where an older backend stands: alone, or on a route of a tree."""

    def __init__(self, call_mode: CallMode, route: str) -> None:
        self.call_mode = call_mode
        self.route = route

    def run(self, backend: Any, *calls: Any, **start: Any) -> dict[str, Any]:
        """Run an agent on a backend through a script of calls."""
        tree = CompositeBackend(StateBackend(), {f"{self.route}/": backend}) if self.route else backend
        with ScriptedModel(*calls, "Done.") as model:
            return self.call_mode.invoke(create_deep_agent(model, backend=tree), {"messages": "Go", **start})

    def use(self, backend: Any, tool: str, /, **arguments: Any) -> ToolMessage:
        """Make one call; paths are those of the backend."""
        for name in ("path", "file_path"):
            if name in arguments:
                arguments[name] = self.route + arguments[name]
        return self.run(backend, call(tool, **arguments))["messages"][-2]


@pytest.fixture(params=[("", "sync"), ("/shelf", "async")], ids=["alone", "routed"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Alone, called blocking, then on a route, awaited: each way is the same code for both places."""
    route, mode = request.param
    with asyncio.Runner() as runner:
        yield Place(CallMode(mode, runner), route)


def backend_of(kind: type, base: type[BackendProtocol] = BackendProtocol) -> Any:
    """Make a backend class of methods whose signatures are older than the protocol's."""
    return type(kind.__name__, (kind, base), {"__module__": __name__})


def infos() -> list[FileInfo]:
    return [{"path": path, "is_dir": False} for path in FILES]


def lines(pattern: str) -> list[GrepMatch]:
    return [
        {"path": path, "line": number, "text": line}
        for path, text in FILES.items()
        for number, line in enumerate(text.split("\n"), 1)
        if pattern in line
    ]


def with_older_names() -> BackendProtocol:
    class Older(BackendProtocol):
        def ls_info(self, path: str) -> list[FileInfo]:
            return infos()

        def grep_raw(
            self, pattern: str, path: str | None = None, glob: str | None = None
        ) -> list[GrepMatch] | str:
            return "Invalid regex pattern: [" if pattern == "[" else lines(pattern)

        def glob_info(self, pattern: str, path: str = "/") -> list[FileInfo]:
            assert path == "/"
            return infos()

    return Older()


def with_older_awaited_names() -> BackendProtocol:
    class OlderAwaited(BackendProtocol):
        async def als_info(self, path: str) -> list[FileInfo]:
            return infos()

        async def agrep_raw(
            self, pattern: str, path: str | None = None, glob: str | None = None
        ) -> list[GrepMatch] | str:
            return "Invalid regex pattern: [" if pattern == "[" else lines(pattern)

        async def aglob_info(self, pattern: str, path: str = "/") -> list[FileInfo]:
            assert path == "/"
            return infos()

    return OlderAwaited()


def search(place: Place, backend: BackendProtocol) -> list[str]:
    return [
        place.use(backend, "ls", path="/").text,
        place.use(backend, "glob", pattern="*.md").text,
        place.use(backend, "glob", pattern="*.md", path="/").text,
        place.use(backend, "grep", pattern="t", output_mode="files_with_matches").text,
    ]


def test_a_backend_with_the_older_names_alone(place: Place) -> None:
    with warned("Older implements", times=3):
        backend = with_older_names()

    for said in search(place, backend):
        assert f"{place.route}/a.md" in said
        assert f"{place.route}/b.md" in said
    refused = place.use(backend, "grep", pattern="[", path="/")
    assert "Invalid regex pattern" in refused.text
    assert refused.status == "error"


def test_a_backend_with_the_older_awaited_names_alone() -> None:
    with warned("OlderAwaited implements", times=3):
        backend = with_older_awaited_names()

    async_backend_serves_awaiting_agents(backend)


def async_backend_serves_awaiting_agents(backend: BackendProtocol) -> None:
    with asyncio.Runner() as runner:
        for route in ("", "/shelf"):
            place = Place(CallMode("async", runner), route)
            assert all(f"{route}/a.md" in said for said in search(place, backend))
            place = Place(CallMode("sync", runner), route)
            with pytest.raises(RunConfigError, match="only als.*ainvoke"):
                place.use(backend, "ls", path="/")


def test_a_backend_that_has_both_generations_of_names_says_nothing() -> None:
    class Both(BackendProtocol):
        def ls(self, path: str) -> LsResult:
            return LsResult(entries=infos())

        def ls_info(self, path: str) -> list[FileInfo]:
            raise AssertionError("the newer name goes first")

    assert Both().ls("/").entries == infos()


class Modern(BackendProtocol):
    def ls(self, path: str) -> LsResult:
        return LsResult(entries=infos()) if path == "/" else LsResult(error="gone", code="file_not_found")

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return GrepResult(error="bad") if pattern == "[" else GrepResult(matches=lines(pattern))


def listed(call_mode: CallMode, method: str, *args: str) -> Any:
    backend: Any = Modern()
    if call_mode.name == "sync":
        return getattr(backend, method)(*args)

    async def call_it() -> Any:
        return await getattr(backend, f"a{method}")(*args)

    return asyncio.run(call_it())


def test_the_older_names_can_be_called_on_any_backend(call_mode: CallMode) -> None:
    with warned("ls_info"):
        assert listed(call_mode, "ls_info", "/") == infos()
    with warned("grep_raw", times=2):
        assert listed(call_mode, "grep_raw", "one") == lines("one")
        assert listed(call_mode, "grep_raw", "[") == "bad"
    with warned("ls_info"), pytest.raises(NotImplementedError, match="gone"):
        listed(call_mode, "ls_info", "/gone")
    with warned("glob_info"), pytest.raises(NotImplementedError, match=r"does not implement glob\(\)"):
        listed(call_mode, "glob_info", "*")


class Sorted(FilesystemBackend):
    """Builds on a method of ours by its older name."""

    def glob_info(self, pattern: str, path: str = "/") -> list[FileInfo]:
        return sorted(super().glob_info(pattern, path), key=itemgetter("path"))


def test_a_subclass_of_ours_may_build_on_an_older_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).touch()

    with warned("glob_info"):
        found = Sorted(tmp_path).glob_info("*")
    assert [each["path"] for each in found] == ["/a", "/b"]


class RawLists:
    def ls(self, path: str) -> Any:
        return infos()

    def glob(self, pattern: str, path: str | None = None) -> Any:
        return [info["path"] for info in infos()]

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None) -> Any:
        return "bad pattern" if pattern == "[" else lines(pattern)


def test_today_s_names_that_answer_with_lists_and_text(place: Place) -> None:
    kind = backend_of(RawLists)
    with warned("RawLists", times=3):
        found = search(place, kind())
        refused = place.use(kind(), "grep", pattern="[")

    assert all(f"{place.route}/a.md" in said for said in found)
    assert refused.status == "error" or place.route


def reading(text: str) -> BackendProtocol:
    class Reader(BackendProtocol):
        def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
            return text

    return Reader()


def test_text_that_is_numbered_already_is_shown_as_it_is(place: Place) -> None:
    numbered = "     1\tone\n     2\ttwo\n     3\tthree"
    with warned("Reader.read"):
        read = place.use(reading(numbered), "read_file", file_path="/a.md", limit=2)

    assert read.text == "     1\tone\n     2\ttwo"


def test_text_that_starts_with_error_is_one(place: Place) -> None:
    with warned("Reader.read"):
        read = place.use(reading("Error: File '/a.md' not found"), "read_file", file_path="/a.md")

    assert read.status == "error"
    assert read.text.startswith(f"Error: File '{place.route}/a.md' not found")


def test_numbered_text_that_is_too_long_is_cut(call_mode: CallMode) -> None:
    with warned("Reader.read"):
        read = Place(call_mode, "").use(reading("     1\t" + "x" * 90_000), "read_file", file_path="/a.md")

    assert len(read.text) == 80_000
    assert read.text.endswith("smaller limit.")


@pytest.mark.parametrize("error", ["file_not_found", "permission_denied", "is_directory", "invalid_path"])
def test_an_error_that_is_a_code_becomes_one(place: Place, error: str) -> None:
    class Coded(BackendProtocol):
        def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
            return ReadResult(error=error)

    assert code_of(place.use(Coded(), "read_file", file_path="/a.md")) == error


class InTheState(StateBackend):
    """Hands back what is to be kept, as backends once did."""

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        return WriteResult(None, file_path, {file_path: {"content": content.split("\n")}})

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        **options: Any,
    ) -> EditResult:
        update: Any = {file_path: {"content": [new_string]}}
        occurrences: Any = 1
        return EditResult(None, file_path, update, occurrences)


def test_files_that_a_write_and_an_edit_hand_back_are_kept(place: Place) -> None:
    path = f"{place.route}/a.md"
    with warned("files_update", times=2):
        result = place.run(
            InTheState(),
            call("write_file", file_path=path, content="one\ntwo"),
            call("read_file", file_path=path),
            call("edit_file", file_path=path, old_string="one\ntwo", new_string="three"),
            call("read_file", file_path=path),
        )

    told = [message.text for message in result["messages"] if message.type == "tool"]
    assert told[1].split() == ["1", "one", "2", "two"]
    assert told[2] == f"Successfully replaced 1 instance(s) of the string in '{path}'"
    assert told[3].split() == ["1", "three"]
    assert result["files"]["/a.md"]["content"] == ["three"]


def test_files_handed_back_without_a_place_for_them_are_no_success(call_mode: CallMode) -> None:
    class Elsewhere(BackendProtocol):
        def write(self, file_path: str, content: str) -> WriteResult:
            return WriteResult(path=file_path, files_update={file_path: {"content": content}})

    with warned("files_update"):
        written = Place(call_mode, "").use(Elsewhere(), "write_file", file_path="/a.md", content="A")

    assert code_of(written) == "io_error"
    assert "state_files=True" in written.text


def test_results_take_files_where_they_once_stood() -> None:
    files: Any = {"/a": {"content": "A"}}
    two: Any = 2
    with warned("files_update", times=4):
        results = [
            WriteResult(None, "/a", files),
            WriteResult(path="/a", files_update=files),
            EditResult(None, "/a", files, two),
            EditResult(path="/a", occurrences=2, files_update=files),
        ]

    assert [each.files_update for each in results] == [files] * 4
    assert [each.occurrences for each in results[2:] if isinstance(each, EditResult)] == [2, 2]
    assert EditResult(None, "/a", 2).occurrences == 2


class Untimed:
    def execute(self, command: str) -> Any:
        return ExecuteResponse(f"did {command}", 0)


def test_a_command_without_a_time_limit(call_mode: CallMode) -> None:
    place = Place(call_mode, "")
    backend = backend_of(Untimed, SandboxBackendProtocol)()

    assert "did ls" in place.use(backend, "execute", command="ls").text
    refused = place.use(backend, "execute", command="ls", timeout=5)
    assert code_of(refused) == "not_supported"
    assert "does not support per-command timeout" in refused.text


class Awaited:
    async def als(self, path: str) -> LsResult:
        return LsResult(entries=infos())

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        return GlobResult(matches=infos())

    async def agrep(self, pattern: str, path: str | None = None, glob: str | None = None) -> GrepResult:
        return GrepResult(matches=lines(pattern))


def test_a_backend_that_can_only_be_awaited() -> None:
    async_backend_serves_awaiting_agents(backend_of(Awaited)())


class Alike:
    """Has the methods of a backend and is none."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def ls_info(self, path: str) -> list[FileInfo]:
        return [{"path": path} for path in self.kept]

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return ReadResult(file_data={"content": self.kept[file_path]})

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        return self.write(file_path, content)

    def write(self, file_path: str, content: str) -> WriteResult:
        self.kept[file_path] = content
        return WriteResult(path=file_path)

    @property
    def id(self) -> str:
        return "alike"

    def execute(self, command: str, timeout: int | None = None) -> ExecuteResponse:
        return ExecuteResponse(f"{self.id}: {command} {timeout}", 0)


def test_a_backend_that_only_looks_like_one(call_mode: CallMode) -> None:
    backend: Any = Alike()
    calls = [
        call("write_file", file_path="/a.md", content="A"),
        call("read_file", file_path="/a.md"),
        call("ls", path="/"),
        call("execute", command="ls", timeout=5),
        call("delete", file_path="/a.md"),
    ]
    with ScriptedModel(*calls, "Done.") as model:
        with warned("let Alike inherit"):
            agent = create_deep_agent(model, backend=backend)
        result = call_mode.invoke(agent, {"messages": "Go"})

    told = [message.text for message in result["messages"] if message.type == "tool"]
    assert told[0] == "Wrote file /a.md"
    assert told[1].split() == ["1", "A"]
    assert told[2] == "/a.md"
    assert told[3].startswith("alike: ls 5")
    assert "[not_supported]" in told[4]
    assert "delete" not in model.asked[0].tool_names


def test_a_factory_of_what_only_looks_like_a_backend(place: Place) -> None:
    kept = Alike()

    def make(runtime: Any) -> Any:
        return kept

    with warned("A backend factory"):
        place.use(make, "write_file", file_path="/a.md", content="A")

    assert kept.kept == {"/a.md": "A"}


def test_what_is_no_backend_is_refused_with_its_name() -> None:
    not_one: Any = {"read": 1}
    with pytest.raises(ValueError, match="must be a BackendProtocol, got {'read': 1}"):
        create_deep_agent(ScriptedModel(), backend=not_one)


@pytest.mark.parametrize("answer", [None, 7, {"path": "/a"}])
def test_an_answer_of_no_version_is_an_error(place: Place, answer: Any) -> None:
    class Odd(BackendProtocol):
        def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
            return answer

        def delete(self, file_path: str) -> Any:
            return answer

    for tool in ("read_file", "delete"):
        said = place.use(Odd(), tool, file_path="/a.md")
        assert code_of(said) == "io_error"
        assert f"answered with a {type(answer).__name__}, not a " in said.text


def test_options_reach_only_methods_that_name_them_in_both_colours(place: Place) -> None:
    class HalfGuarded:
        def write(self, file_path: str, content: str, *, expected_version: str | None = None) -> WriteResult:
            return WriteResult(path=file_path)

        async def awrite(self, file_path: str, content: str) -> WriteResult:
            return WriteResult(path=file_path)

        def grep(
            self,
            pattern: str,
            path: str | None = None,
            glob: str | None = None,
            *,
            max_count: int | None = None,
        ) -> GrepResult:
            return GrepResult(matches=lines(pattern))

        async def agrep(self, pattern: str, path: str | None = None, glob: str | None = None) -> GrepResult:
            return GrepResult(matches=lines(pattern))

    backend = backend_of(HalfGuarded)()
    assert place.use(backend, "write_file", file_path="/a.md", content="A").status == "success"
    found = place.use(backend, "grep", pattern="t", path="/", max_count=1, output_mode="content")
    assert found.text.count("two") + found.text.count("three") == 1


def test_a_directory_ends_in_a_slash_however_it_was_listed(place: Place) -> None:
    class Bare(BackendProtocol):
        def ls(self, path: str) -> LsResult:
            return LsResult(entries=[{"path": "/sea", "is_dir": True}, {"path": "/sky/", "is_dir": True}])

    listed = place.use(Bare(), "ls", path="/").text.split("\n")

    assert listed == [f"{place.route}/sea/", f"{place.route}/sky/"]
