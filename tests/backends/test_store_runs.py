"""Files in a store, in agents and in many hands."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from deepagents import create_deep_agent
from deepagents._async import await_thread
from deepagents.backends import StoreBackend
from deepagents.backends.store import BackendContext
from deepagents.testing import ScriptedModel, call
from tests.backends.test_store import NS, stored, text
from tests.conftest import CallMode

# Many at a time


class SlowStore(InMemoryStore):
    """Lets other tasks run before each answer."""

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        for _ in range(3):
            await asyncio.sleep(0)
        return await super().abatch(ops)


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_no_edit_is_lost_between_threads_and_tasks() -> None:
    store = SlowStore()
    StoreBackend(namespace=NS, store=store).write("/log", "end\n")

    def by_thread(number: int) -> None:
        done = StoreBackend(namespace=NS, store=store).edit("/log", "end\n", f"thread {number}\nend\n")
        assert done.error is None, done.error

    async def by_task(number: int) -> None:
        done = await StoreBackend(namespace=NS, store=store).aedit("/log", "end\n", f"task {number}\nend\n")
        assert done.error is None, done.error

    async def by_tasks() -> None:
        await asyncio.gather(*map(by_task, range(20)))

    threads = [threading.Thread(target=by_thread, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    asyncio.run(by_tasks())
    for thread in threads:
        thread.join()

    lines = (StoreBackend(namespace=NS, store=store).read("/log").file_data or {"content": ""})["content"]
    expected = {f"{kind} {number}" for kind in ("thread", "task") for number in range(20)}
    assert {*str(lines).splitlines()} == expected | {"end"}


def test_of_many_writers_of_one_version_one_wins() -> None:
    files = StoreBackend(namespace=NS, store=SlowStore())
    version = files.write("/a", "start").version

    async def race() -> list[Any]:
        writers = (files.awrite("/a", f"{n}", expected_version=version) for n in range(10))
        return await asyncio.gather(*writers)

    codes = [done.code for done in asyncio.run(race())]
    assert sorted(codes, key=str) == [None, *["stale_version"] * 9]


class GatedStore(InMemoryStore):
    """Keeps things in threads, which go on when nobody waits for them, once a gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.gate = asyncio.Event(), threading.Event()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        asked = list(ops)
        if not isinstance(asked[0], PutOp):
            return self.batch(asked)
        self.reached.set()
        return await await_thread(lambda: self.gate.wait(10) and self.batch(asked) or [])


@pytest.mark.parametrize(
    "change", [("aedit", "/log", "a", "A"), ("aupload_files", [("/log", b"A b"), ("/other", b"")])]
)
async def test_a_cancelled_change_that_still_lands_loses_no_other(change: tuple[str, Any]) -> None:
    store = GatedStore()
    store.put(NS, "/log", text("a b"))
    files = StoreBackend(namespace=NS, store=store)
    method, *given = change
    first = asyncio.ensure_future(getattr(files, method)(*given))
    await store.reached.wait()
    first.cancel()
    second = asyncio.ensure_future(files.aedit("/log", "b", "B"))
    for _ in range(10):
        await asyncio.sleep(0)
    store.gate.set()
    done = await second

    assert first.cancelled()
    assert done.error is None
    kept = store.get(NS, "/log")
    assert kept is not None
    assert kept.value["content"] == "A B"


@pytest.mark.usefixtures("hasty_threads")
def test_a_listing_survives_changes_at_the_same_time() -> None:
    store = stored(*(f"/f{n}" for n in range(500)))
    files = StoreBackend(namespace=NS, store=store)
    done = threading.Event()

    def change() -> None:
        while not done.wait(0.0002):
            store.put(NS, "/come-and-go", text("x"))
            store.delete(NS, "/come-and-go")

    changing = threading.Thread(target=change)
    changing.start()
    errors = {files.ls("/").error for _ in range(50)}
    done.set()
    changing.join()

    assert errors == {None}


# In an agent


@dataclass
class User:
    user_id: str


def agent_of(*turns: Any, store: BaseStore | None = None, backend: StoreBackend | None = None) -> Any:
    return create_deep_agent(
        ScriptedModel(*turns), backend=backend or StoreBackend(), store=store, context_schema=User
    )


def tool_results(result: dict[str, Any]) -> Iterator[str]:
    return (message.content for message in result["messages"] if message.type == "tool")


def of_user(runtime: Any) -> tuple[str, ...]:
    return (runtime.context.user_id, "files")


def test_files_outlive_the_thread(call_mode: CallMode) -> None:
    store = InMemoryStore()
    first = agent_of(call("write_file", file_path="/notes.md", content="likes tea\n"), "ok", store=store)
    second = agent_of(
        call("read_file", file_path="/notes.md"),
        call("edit_file", file_path="/notes.md", old_string="tea", new_string="coffee"),
        "ok",
        store=store,
    )

    written = call_mode.invoke(first, {"messages": "remember"})
    read = list(tool_results(call_mode.invoke(second, {"messages": "what?"})))

    assert not written.get("files")
    assert "likes tea" in read[0]
    item = store.get(("filesystem",), "/notes.md")
    assert item is not None
    assert item.value["content"] == "likes coffee\n"


def test_each_assistant_has_its_own_files(call_mode: CallMode) -> None:
    store = InMemoryStore()
    for name in ("one", "two"):
        agent = agent_of(call("write_file", file_path="/me", content=name), "ok", store=store)
        call_mode.invoke(agent, {"messages": "go"}, {"metadata": {"assistant_id": name}})

    kept = {item.namespace: item.value["content"] for item in store.search(())}
    assert kept == {("one", "filesystem"): "one", ("two", "filesystem"): "two"}


def test_a_factory_sees_the_run_at_every_operation(call_mode: CallMode) -> None:
    store = InMemoryStore()
    backend = StoreBackend(namespace=of_user, store=store)
    seen: dict[str, list[str]] = {}
    for user in ("ann", "bob"):
        agent = agent_of(
            call("write_file", file_path=f"/{user}.md", content="x"),
            call("ls", path="/"),
            "ok",
            backend=backend,
        )
        result = call_mode.invoke(agent, {"messages": "go"}, context=User(user))
        seen[user] = list(tool_results(result))

    assert {item.namespace for item in store.search(())} == {("ann", "files"), ("bob", "files")}
    assert "bob.md" not in seen["ann"][1]
    assert "ann.md" not in seen["bob"][1]


def test_a_factory_for_the_older_context_still_works(call_mode: CallMode) -> None:
    store = InMemoryStore()

    def older(ctx: Any) -> tuple[str, ...]:
        assert isinstance(ctx, BackendContext)
        return (ctx.runtime.context.user_id, f"{len(ctx.state['messages'])}")

    agent = agent_of(
        call("write_file", file_path="/a", content="x"),
        "ok",
        backend=StoreBackend(namespace=older, store=store),
    )
    with pytest.warns(DeprecationWarning, match=r"ctx\.(runtime|state)"):
        call_mode.invoke(agent, {"messages": "go"}, context=User("ann"))

    assert {item.namespace for item in store.search(())} == {("ann", "2")}
