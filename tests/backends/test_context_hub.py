"""Files in a Context Hub repository: commits, conflicts, and what cannot be kept there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langsmith.schemas import FileEntry, SkillEntry
from langsmith.utils import LangSmithAPIError, LangSmithConnectionError

from deepagents import create_deep_agent
from deepagents.backends import ContextHubBackend
from deepagents.backends.protocol import Allowed, BackendProtocol
from deepagents.backends.results import WriteResult
from deepagents.testing import ScriptedModel, calls
from deepagents.testing.contract import BackendContract
from tests.backends.hosted import Hub
from tests.conftest import CallMode


class TextsOnly(ContextHubBackend):
    """Passes over a check as soon as it wants to keep what the hub cannot."""

    def upload_files(self, files: list[tuple[str, bytes]], *, allowed: Allowed | None = None) -> list[Any]:
        _pass_over(content for _, content in files)
        return super().upload_files(files, allowed=allowed)

    async def aupload_files(self, files: list[tuple[str, bytes]], **options: Any) -> list[Any]:
        _pass_over(content for _, content in files)
        return await super().aupload_files(files, **options)

    def append(self, file_path: str, content: str | bytes, *, allowed: Allowed | None = None) -> WriteResult:
        _pass_over([content])
        return super().append(file_path, content, allowed=allowed)

    async def aappend(self, file_path: str, content: str | bytes, **options: Any) -> WriteResult:
        _pass_over([content])
        return await super().aappend(file_path, content, **options)


def _pass_over(contents: Iterable[str | bytes]) -> None:
    for content in contents:
        try:
            content if isinstance(content, str) else content.decode()
        except UnicodeDecodeError:
            pytest.skip("the hub keeps text only")


class TestContextHub(BackendContract):
    def make_backend(self) -> BackendProtocol:
        return TextsOnly("-/agent", client=Hub())


@pytest.fixture
def hub() -> Hub:
    made = Hub()
    made.commit({"a.md": FileEntry(content="one\ntwo\n"), "skills/x": SkillEntry(repo_handle="me/x")})
    return made


@pytest.fixture
def backend(hub: Hub) -> ContextHubBackend:
    return ContextHubBackend("-/agent", client=hub)


def test_a_repository_is_read_whole_and_once(
    backend: ContextHubBackend, hub: Hub, call_mode: CallMode
) -> None:
    read = call_mode.call(backend, "read", "/a.md")
    listed = call_mode.call(backend, "ls", "/")

    assert read.file_data["content"] == "one\ntwo\n"
    assert [each["path"] for each in listed.entries] == ["/a.md"]
    assert hub.pulled == 1


def test_who_asks_at_the_same_time_waits_for_one_reading(backend: ContextHubBackend, hub: Hub) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: backend.ls("/"), range(8)))

    assert hub.pulled == 1


def test_what_is_linked_is_no_file(backend: ContextHubBackend) -> None:
    assert backend.get_linked_entries() == {"skills/x": "me/x"}
    assert backend.read("/skills/x").code == "file_not_found"
    assert backend.has_prior_commits()


def test_a_repository_that_is_not_there_is_empty_until_the_first_commit(call_mode: CallMode) -> None:
    hub = Hub()
    backend = ContextHubBackend("me/new", client=hub)

    assert not backend.has_prior_commits()
    assert call_mode.call(backend, "ls", "/").entries == []
    assert call_mode.call(backend, "write", "/a", "text").error is None
    assert hub.texts() == {"a": "text"}
    assert backend.has_prior_commits()


def test_each_change_is_a_commit_on_top_of_the_last(
    backend: ContextHubBackend, hub: Hub, call_mode: CallMode
) -> None:
    call_mode.call(backend, "write", "/b/c.md", "three")
    call_mode.call(backend, "edit", "/a.md", "one", "1")
    call_mode.call(backend, "delete", "/b")
    call_mode.call(backend, "upload_files", [("/x", b"x"), ("/y", b"y"), ("/bin", b"\xff\x00")])

    assert hub.texts() == {"a.md": "1\ntwo\n", "x": "x", "y": "y"}
    assert (len(hub.commits), hub.pulled) == (5, 1)


def test_what_is_no_text_is_refused_and_the_rest_taken(
    backend: ContextHubBackend, call_mode: CallMode
) -> None:
    sent: list[Any] = [("/bin", b"\xff\x00"), ("/b", b"b"), ("/text", "no bytes")]
    answers = call_mode.call(backend, "upload_files", sent)

    assert [each.error for each in answers] == ["invalid_encoding", None, "invalid_argument"]
    assert backend.append("/b", b"\xff\x00").code == "invalid_encoding"
    assert backend.download_files(["/b"])[0].content == b"b"


def test_a_change_is_made_again_on_top_of_somebody_elses(
    backend: ContextHubBackend, hub: Hub, call_mode: CallMode
) -> None:
    call_mode.call(backend, "ls", "/")
    hub.commit({"a.md": FileEntry(content="zero\none\ntwo\n"), "theirs": FileEntry(content="t")})

    edited = call_mode.call(backend, "edit", "/a.md", "one", "1")

    assert edited.error is None
    assert hub.texts() == {"a.md": "zero\n1\ntwo\n", "theirs": "t"}


def test_an_edit_that_no_longer_fits_is_refused(backend: ContextHubBackend, hub: Hub) -> None:
    backend.ls("/")
    hub.commit({"a.md": FileEntry(content="all new")})

    assert backend.edit("/a.md", "one", "1").code == "no_match"
    assert hub.texts() == {"a.md": "all new"}


def test_a_write_over_what_nobody_here_has_seen_is_refused(backend: ContextHubBackend, hub: Hub) -> None:
    seen = backend.read("/a.md").version
    hub.commit({"a.md": FileEntry(content="theirs")})

    assert backend.write("/a.md", "mine", expected_version=seen).code == "stale_version"
    assert hub.texts() == {"a.md": "theirs"}


def test_one_who_never_comes_first_gives_up(hub: Hub) -> None:
    class Busy:
        def pull_agent(self, identifier: str, *, version: str | None = None) -> Any:
            return hub.pull_agent(identifier)

        def push_agent(
            self, identifier: str, *, files: dict[str, Any], parent_commit: str | None = None
        ) -> str:
            hub.commit({f"theirs-{uuid.uuid4()}": FileEntry(content="t")})
            return hub.push_agent(identifier, files=files, parent_commit=parent_commit)

    assert ContextHubBackend("-/agent", client=Busy()).write("/a", "x").code == "parallel_mutation"


def test_parallel_changes_all_land(call_mode: CallMode) -> None:
    hub = Hub()
    backend = ContextHubBackend("-/agent", client=hub)
    many = [("write_file", {"file_path": f"/{n}", "content": str(n)}) for n in range(12)]

    call_mode.invoke(
        create_deep_agent(ScriptedModel(calls(*many), "Done."), backend=backend), {"messages": "Go"}
    )

    assert hub.texts() == {str(n): str(n) for n in range(12)}


@pytest.mark.parametrize(
    "failure",
    [
        LangSmithConnectionError("secret host"),
        LangSmithAPIError("secret"),
        ConnectionError("https://user:secret@host"),
        ValueError("secret"),
    ],
)
def test_a_hub_that_fails_is_an_error_result(
    failure: Exception, backend: ContextHubBackend, hub: Hub, call_mode: CallMode
) -> None:
    hub.failure = failure

    answers = [
        call_mode.call(backend, "read", "/a.md"),
        call_mode.call(backend, "write", "/a.md", "x"),
        call_mode.call(backend, "grep", "x"),
    ]

    for answer in answers:
        assert answer.code == "io_error"
        assert answer.error.startswith(f"Hub unavailable: {type(failure).__name__}")
        assert "secret" not in answer.error
    hub.failure = None
    assert call_mode.call(backend, "read", "/a.md").error is None


def test_a_failed_commit_is_not_taken_for_kept(backend: ContextHubBackend, hub: Hub) -> None:
    backend.ls("/")
    hub.failure = LangSmithConnectionError("gone")
    backend.write("/a.md", "lost")
    hub.failure = None

    assert backend.download_files(["/a.md"])[0].content == b"one\ntwo\n"


def test_an_address_that_tells_no_commit_is_looked_after(backend: ContextHubBackend, hub: Hub) -> None:
    hub.address = "https://smith.example/"

    backend.write("/b", "b")
    backend.write("/c", "c")

    assert hub.texts() == {"a.md": "one\ntwo\n", "b": "b", "c": "c"}


def test_a_cancelled_change_is_made_or_not_made_and_nothing_between(
    backend: ContextHubBackend, hub: Hub
) -> None:
    async def cut() -> None:
        writing = asyncio.create_task(backend.awrite("/b", "b"))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

    asyncio.run(cut())

    assert backend.write("/c", "c").error is None
    assert hub.texts()["c"] == "c"
