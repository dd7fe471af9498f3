"""A search under rules reads allowed files alone, whatever backend it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from deepagents.testing import ScriptedModel, call
from tests.backends.flat_backend import FlatBackend
from tests.conftest import CallMode
from tests.tools.bench import code_of

DENY = [FilesystemPermission(["read", "write"], ["/secrets/**", "/d/secrets/**"], "deny")]
FILES = {
    "/docs/a.md": "word",
    "/docs/deep/b.md": "word",
    "/top.md": "word",
    "/secrets/key": "word",
}


def search(call_mode: CallMode, backend: Any, **arguments: Any) -> Any:
    with ScriptedModel(call("grep", pattern="word", **arguments), "Done.") as model:
        agent = create_deep_agent(model, backend=backend, permissions=DENY)
        return call_mode.invoke(agent, {"messages": "Go"})["messages"][2]


@pytest.mark.parametrize("under", ["", "/d"])
def test_the_backend_is_asked_about_allowed_directories_alone(call_mode: CallMode, under: str) -> None:
    files = FlatBackend(FILES)
    backend = CompositeBackend(StateBackend(), {under: files}) if under else files
    found = search(call_mode, backend)

    assert found.text.split("\n") == [f"{under}{each}" for each in sorted(FILES)[:2]] + [f"{under}/top.md"]
    assert [each[2] for each in files.asked if each[0] == "grep"] == ["/docs"]
    assert [each[1] for each in files.asked if each[0] == "read"] == ["/top.md"]


def test_a_filter_is_kept_to(call_mode: CallMode) -> None:
    found = search(call_mode, FlatBackend(FILES), glob="docs/*.md")

    assert found.text == "/docs/a.md"


def test_a_search_of_what_is_allowed_is_left_to_the_backend(call_mode: CallMode) -> None:
    files = FlatBackend(FILES)

    assert search(call_mode, files, path="/docs").text == "/docs/a.md\n/docs/deep/b.md"
    assert [each[:3] for each in files.asked] == [("grep", "word", "/docs")]


def test_a_search_that_would_read_too_many_files_says_how_to_narrow_it(call_mode: CallMode) -> None:
    files = FlatBackend({**{f"/{number}": "word" for number in range(300)}, **FILES})
    refused = search(call_mode, files)

    assert code_of(refused) == "permission_denied"
    assert "Search a directory in which everything is allowed, such as '/docs'" in refused.text
    assert "grep" not in [each[0] for each in files.asked]


async def test_a_long_search_of_a_store_leaves_the_event_loop_free() -> None:
    store = InMemoryStore()
    backend = StoreBackend(store=store, namespace=("files",))
    await backend.awrite("/a", ("a" * 28 + "!\n") * 2)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.ensure_future(tick())
    found = await backend.agrep("(a|aa)+$", regex=True)
    ticking.cancel()

    assert (found.error, found.matches) == (None, [])
    assert ticks > 3


def test_media_that_older_programs_kept_as_text_are_media(call_mode: CallMode) -> None:
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    store = InMemoryStore()
    store.put(("files",), "/old.png", {"content": [picture], "created_at": "", "modified_at": ""})
    store.put(("files",), "/new.png", {"content": picture, "encoding": "utf-8"})
    backend = StoreBackend(store=store, namespace=("files",))
    call_mode.call(backend, "write", "/written.png", picture)

    for path in ("/old.png", "/new.png", "/written.png"):
        page = call_mode.call(backend, "read", path)
        assert (page.file_data["content"], page.file_data["encoding"]) == (picture, "base64")
        (download,) = call_mode.call(backend, "download_files", [path])
        assert download.content.startswith(b"\x89PNG")


def test_one_bad_item_hides_no_match(call_mode: CallMode) -> None:
    store = InMemoryStore()
    store.put(("files",), "/good", {"content": "word", "encoding": "utf-8"})
    store.put(("files",), "/bad", {"content": 7})
    with ScriptedModel(call("grep", pattern="word"), "Done.") as model:
        backend = StoreBackend(store=store, namespace=("files",))
        agent = create_deep_agent(model, backend=backend)
        found = call_mode.invoke(agent, {"messages": "Go"})["messages"][2]

    assert found.status == "success"
    assert "/good" in found.text
    assert "/bad" in found.text
