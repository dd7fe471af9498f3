"""Several backends are one tree, whose parts keep their own ways and do not stand in each other's."""

from __future__ import annotations

import asyncio
import threading
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends import CompositeBackend, FilesystemBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import FileDownloadResponse, GlobResult, GrepResult, LsResult
from deepagents.errors import ConfigError
from tests.backends.flat_backend import FlatBackend
from tests.conftest import CallMode


def paths(found: Any) -> list[str]:
    assert found.error is None, found.error
    return [each["path"] for each in getattr(found, "entries", None) or getattr(found, "matches", ())]


@pytest.mark.parametrize(
    ("path", "owner", "key"),
    [
        ("/a.txt", "default", "/a.txt"),
        ("/memories/a.txt", "memories", "/a.txt"),
        ("/memories", "memories", "/"),
        ("/memories/", "memories", "/"),
        ("/memories2/a.txt", "default", "/memories2/a.txt"),
        ("//memories/./a.txt", "memories", "/a.txt"),
        ("memories/a.txt", "memories", "/a.txt"),
        ("/memories/deep/a.txt", "deep", "/a.txt"),
        ("/memories/deeper/a.txt", "memories", "/deeper/a.txt"),
        ("/deep/a.txt", "default", "/deep/a.txt"),
    ],
)
@pytest.mark.parametrize("slash", ["", "/"])
def test_the_longest_route_serves_a_path(path: str, owner: str, key: str, slash: str) -> None:
    backends = {name: FlatBackend() for name in ("default", "memories", "deep")}
    routes = {f"/memories{slash}": backends["memories"], f"/memories/deep{slash}": backends["deep"]}
    composite = CompositeBackend(backends["default"], routes)

    composite.read(path)

    assert {name: each.asked for name, each in backends.items() if each.asked} == {owner: [("read", key)]}


def test_the_parts_can_be_looked_up() -> None:
    default, short, long = FlatBackend(), FlatBackend(), FlatBackend()
    composite = CompositeBackend(default, {"/a/": short, "/a/b": long}, artifacts_root="/work")

    assert composite.default is default
    assert list(composite.routes.items()) == [("/a/", short), ("/a/b", long)]
    assert composite.sorted_routes == [("/a/b", long), ("/a/", short)]
    assert composite.artifacts_root == composite.capabilities().artifacts_root == "/work"
    look_up = attrgetter("_get_backend_and_key")(composite)
    assert [look_up(path) for path in ("/a/b/c", "/ab")] == [(long, "/c"), (default, "/ab")]


@pytest.mark.parametrize("key", ["/", "", "/../x", "~/x", "C:/x", "/a\n", Path("/a")])
def test_a_route_that_is_no_directory_is_refused(key: Any) -> None:
    with pytest.raises(ConfigError, match="route"):
        CompositeBackend(FlatBackend(), {key: FlatBackend()})


def test_two_routes_for_one_directory_are_refused() -> None:
    with pytest.raises(ConfigError, match="'/a' and '/a/' are the same"):
        CompositeBackend(FlatBackend(), {"/a": FlatBackend(), "/a/": FlatBackend()})


def test_what_is_no_backend_is_refused() -> None:
    nothing: Any = "no backend"
    with pytest.raises(ConfigError, match="'no backend'"):
        CompositeBackend(FlatBackend(), {"/a": nothing})


def test_directories_that_lead_to_routes_are_listed_once(call_mode: CallMode) -> None:
    default = FlatBackend({"/a/own.txt": "", "/z.txt": "", "/a/b/hidden.txt": "", "/file": ""})
    composite = CompositeBackend(
        default, {"/a/b/": FlatBackend({"/x": ""}), "/a/c/d/": FlatBackend(), "/file": FlatBackend()}
    )

    assert paths(call_mode.call(composite, "ls", "/")) == ["/a/", "/file/", "/z.txt"]
    assert paths(call_mode.call(composite, "ls", "/a")) == ["/a/b/", "/a/c/", "/a/own.txt"]
    assert paths(call_mode.call(composite, "ls", "/a/c/")) == ["/a/c/d/"]
    assert paths(call_mode.call(composite, "ls", "/a/b")) == ["/a/b/x"]


MD = {"/t.md": "x", "/sub/n.md": "x"}


def test_a_route_that_a_pattern_cannot_reach_is_not_asked(call_mode: CallMode) -> None:
    memories, notes = FlatBackend(MD), FlatBackend(MD)
    composite = CompositeBackend(FlatBackend(), {"/memories/": memories, "/notes/": notes})

    call_mode.call(composite, "glob", "notes/*.md")

    assert (memories.asked, notes.asked) == ([], [("glob", "/*.md", "/")])


class Broken(BackendProtocol):
    """Raises whatever it is asked."""

    def ls(self, path: str) -> LsResult:
        raise OSError(5, "bad", "/real/place")

    def glob(self, pattern: str, path: str | None = None) -> Any:
        raise OSError(5, "bad", "/real/place")

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None, **_: Any) -> Any:
        raise ValueError("no such luck")


@pytest.mark.parametrize(("method", "code"), [("glob", "io_error"), ("grep", "invalid_argument")])
def test_a_route_that_fails_does_not_hide_the_others(call_mode: CallMode, method: str, code: str) -> None:
    composite = CompositeBackend(
        FlatBackend({"/a": "*"}), {"/bad": Broken(), "/good": FlatBackend({"/b": "*"})}
    )

    found = call_mode.call(composite, method, "*")

    assert [each["path"] for each in found.matches] == ["/a", "/good/b"]
    assert found.code == code
    assert found.error.startswith("/bad: ")
    assert "real" not in found.error


class Wedged(FlatBackend):
    """Answers nobody until it is let go."""

    def __init__(self, let_go: threading.Event) -> None:
        super().__init__()
        self.let_go = let_go

    def ls(self, path: str) -> Any:
        self.let_go.wait(60)
        return super().ls(path)

    def glob(self, pattern: str, path: str | None = None) -> Any:
        self.let_go.wait(60)
        return super().glob(pattern, path)

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None, **_: Any) -> Any:
        self.let_go.wait(60)
        return super().grep(pattern, path, glob)


@pytest.fixture
def wedged(let_go: threading.Event) -> Wedged:
    return Wedged(let_go)


@pytest.mark.parametrize(("method", "times"), [("grep", 1), ("glob", 5)])
def test_routes_that_never_answer_do_not_hide_the_others(
    call_mode: CallMode, wedged: Wedged, method: str, times: int
) -> None:
    good = FlatBackend({"/b": "*"})
    routes = {"/good": good, "/late": wedged, "/never": wedged}
    composite = CompositeBackend(FlatBackend({"/a": "*"}), routes, route_timeout=0.5)

    for _ in range(times):
        found = call_mode.call(composite, method, "*")

        assert [each["path"] for each in found.matches] == ["/a", "/good/b"]
        assert found.code == "timeout"
        assert [line.partition(":")[0] for line in found.error.splitlines()] == ["/late", "/never"]


def test_a_default_that_never_answers_leaves_the_routes_to_list(call_mode: CallMode, wedged: Wedged) -> None:
    composite = CompositeBackend(wedged, {"/good": FlatBackend()}, route_timeout=0.05)

    found = call_mode.call(composite, "ls", "/")

    assert (found.code, [each["path"] for each in found.entries]) == ("timeout", ["/good/"])


def test_what_runs_in_this_process_and_a_route_alone_are_waited_for(
    call_mode: CallMode, let_go: threading.Event
) -> None:
    class Slow(Wedged):
        def capabilities(self, path: str = "/") -> Capabilities:
            return Capabilities(in_process=True)

        def glob(self, pattern: str, path: str | None = None) -> Any:
            self.let_go.wait(0.05)
            return FlatBackend({"/a": ""}).glob(pattern, path)

    class Alone(Slow):
        def capabilities(self, path: str = "/") -> Capabilities:
            return Capabilities()

    composite = CompositeBackend(
        FlatBackend(), {"/state": Slow(let_go), "/alone": Alone(let_go)}, route_timeout=0.01
    )

    assert paths(call_mode.call(composite, "glob", "*", "/alone")) == ["/alone/a"]
    assert "/state/a" in [each["path"] for each in call_mode.call(composite, "glob", "*/a").matches]


def test_blocking_searches_go_to_all_routes_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=10)

    class Meeting(FlatBackend):
        def glob(self, pattern: str, path: str | None = None) -> Any:
            meeting.wait()
            return super().glob(pattern, path)

    composite = CompositeBackend(FlatBackend(), {"/1": Meeting({"/a": ""}), "/2": Meeting({"/a": ""})})

    assert paths(composite.glob("*/a")) == ["/1/a", "/2/a"]


def test_when_all_fail_there_are_no_matches(call_mode: CallMode) -> None:
    composite = CompositeBackend(Broken(), {"/bad": Broken()})

    found = call_mode.call(composite, "glob", "*")

    assert found.matches is None
    assert [line.partition(":")[0] for line in found.error.splitlines()] == ["/", "/bad"]


def test_a_default_that_cannot_list_leaves_the_routes(call_mode: CallMode) -> None:
    found = call_mode.call(CompositeBackend(Broken(), {"/good": FlatBackend()}), "ls", "/")

    assert (found.code, [each["path"] for each in found.entries]) == ("io_error", ["/good/"])


def test_a_route_that_cannot_delete_says_so(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    composite = CompositeBackend(FilesystemBackend(tmp_path), {"/flat": FlatBackend({"/a": ""})})

    assert call_mode.call(composite, "delete", "/flat/a").code == "not_supported"
    assert call_mode.call(composite, "delete", "/a").path == "/a"
    assert [composite.capabilities(path).delete for path in ("/", "/flat")] == [True, False]


def test_errors_name_the_path_that_was_asked(call_mode: CallMode, tmp_path: Path) -> None:
    composite = CompositeBackend(FlatBackend(), {"/disk": FilesystemBackend(tmp_path)})

    assert "'/disk/a.txt' not found" in call_mode.call(composite, "read", "/disk/a.txt").error
    assert "'/disk/a.txt'" in call_mode.call(composite, "edit", "/disk/a.txt", "x", "y").error
    assert "'/disk/no'" in call_mode.call(composite, "ls", "/disk/no").error


class Turn(FlatBackend):
    """Answers, when awaited, only after the route whose turn it is has been asked."""

    def __init__(self, asked: asyncio.Event, after: asyncio.Event, *, fails: bool = False) -> None:
        super().__init__({"/a": "*"})
        self._asked, self._after, self._fails = asked, after, fails

    async def aglob(self, pattern: str, path: str | None = None, **options: Any) -> GlobResult:
        await self._meet()
        return self.glob(pattern, path)

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, **options: Any
    ) -> GrepResult:
        await self._meet()
        return self.grep(pattern, path, glob)

    async def _meet(self) -> None:
        self._asked.set()
        await self._after.wait()
        if self._fails:
            raise ValueError("fails")


@pytest.mark.parametrize("method", ["aglob", "agrep"])
@pytest.mark.parametrize("fails", [False, True])
def test_routes_are_asked_at_the_same_time_and_answer_in_order(method: str, fails: bool) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    routes = {"/1": Turn(first, second, fails=fails), "/2": Turn(second, first, fails=fails)}

    async def search() -> Any:
        return await asyncio.wait_for(getattr(CompositeBackend(FlatBackend(), routes), method)("*"), 10)

    found = asyncio.run(search())

    if fails:
        assert [line[:3] for line in found.error.splitlines()] == ["/1:", "/2:"]
    else:
        assert [each["path"] for each in found.matches] == ["/1/a", "/2/a"]


def test_transfers_go_to_all_routes_at_the_same_time() -> None:
    first, second = asyncio.Event(), asyncio.Event()

    class Slow(BackendProtocol):
        def __init__(self, asked: asyncio.Event, after: asyncio.Event) -> None:
            self._asked, self._after = asked, after

        async def adownload_files(self, paths: list[str], **options: Any) -> list[FileDownloadResponse]:
            self._asked.set()
            await self._after.wait()
            return [FileDownloadResponse(path, b"") for path in paths]

    composite = CompositeBackend(Slow(first, second), {"/2": Slow(second, first)})

    async def download() -> list[FileDownloadResponse]:
        return await asyncio.wait_for(composite.adownload_files(["/2/a", "/a"]), 10)

    assert [each.path for each in asyncio.run(download())] == ["/2/a", "/a"]
