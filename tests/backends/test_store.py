"""Files in a store: what only this backend promises."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore

from deepagents.backends import StoreBackend
from deepagents.errors import ConfigError
from tests.conftest import CallMode

NS = ("user", "files")


class CountingStore(InMemoryStore):
    """Counts round trips, and fails whenever it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.trips: list[str] = []
        self.broken = False

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return super().batch(self._counted(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await super().abatch(self._counted(ops))

    def _counted(self, ops: Iterable[Op]) -> list[Op]:
        listed = list(ops)
        names: dict[type[Any], str] = {GetOp: "get", PutOp: "put", SearchOp: "search"}
        self.trips.append(f"{names[type(listed[0])]} {len(listed)}")
        if self.broken:
            raise ConnectionError("connection to server at 10.1.2.3, user admin, failed")
        return listed


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"content": content, "encoding": "utf-8", "created_at": "then", "modified_at": "then", **more}


def stored(*paths: str, store: BaseStore | None = None, namespace: tuple[str, ...] = NS) -> BaseStore:
    """Put one-line files into a store."""
    kept = store or InMemoryStore()
    for path in paths:
        kept.put(namespace, path, text("line\n"))
    return kept


def paths(found: Any) -> list[str]:
    return [each["path"] for each in found.entries or []]


# Where the namespace and the store come from


def test_the_plain_forms_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StoreBackend()
        StoreBackend(store=InMemoryStore())
        capable = StoreBackend(namespace=NS).capabilities()
    assert (capable.delete, capable.versions, capable.state_files, capable.in_process) == (
        True,
        True,
        False,
        False,
    )


@pytest.mark.parametrize(
    "make", [lambda: StoreBackend(SimpleNamespace(store=None)), lambda: StoreBackend(file_format="v2")]
)
def test_older_arguments_are_taken_with_one_warning(make: Callable[[], StoreBackend]) -> None:
    with pytest.warns(DeprecationWarning, match="StoreBackend") as warned:
        make()
    assert [warning.filename for warning in warned] == [__file__]


def test_without_a_store_the_error_shows_both_ways(call_mode: CallMode) -> None:
    with pytest.raises(RuntimeError, match="StoreBackend has no store") as caught:
        call_mode.call(StoreBackend(namespace=NS), "ls", "/")
    assert "StoreBackend(store=" in str(caught.value)
    assert "create_deep_agent(..., store=" in str(caught.value)


@pytest.mark.parametrize(
    ("namespace", "error", "says"),
    [
        ((), ConfigError, "must not be empty"),
        (("a", ""), ConfigError, "must be empty"),
        (("a", 1), TypeError, "must be a string"),
        ("files", TypeError, "tuple of strings"),
        (("a/b",), ConfigError, "disallowed characters"),
        (("*",), ConfigError, "disallowed characters"),
        (("a b",), ConfigError, "disallowed characters"),
        (("a\n",), ConfigError, "disallowed characters"),
        (("langgraph", "a"), ConfigError, "langgraph"),
    ],
)
def test_a_namespace_that_cannot_be_kept_apart_is_refused(
    namespace: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        StoreBackend(namespace=namespace)
    made = StoreBackend(namespace=lambda _: namespace, store=InMemoryStore())
    with pytest.raises(error, match=says):
        made.ls("/")


def test_an_address_may_name_a_user(call_mode: CallMode) -> None:
    store = InMemoryStore()
    files = StoreBackend(namespace=("ann.b@example.org", "x+y:z~1"), store=store)
    other = StoreBackend(namespace=("ann", "b@example", "org"), store=store)

    call_mode.call(files, "write", "/a", "x")

    assert paths(call_mode.call(files, "ls", "/")) == ["/a"]
    assert paths(call_mode.call(other, "ls", "/")) == []


def test_a_factory_that_needs_a_run_says_so_outside_of_one() -> None:
    def of_user(runtime: Any) -> tuple[str, ...]:
        return (runtime.context.user_id,)

    def of_nothing(runtime: Any) -> tuple[str, ...]:
        return {}["missing"]

    with pytest.raises(RuntimeError, match="outside a LangGraph graph execution"):
        StoreBackend(namespace=of_user, store=InMemoryStore()).ls("/")
    with pytest.raises(KeyError, match="missing"):
        StoreBackend(namespace=of_nothing, store=InMemoryStore()).ls("/")
    always = StoreBackend(namespace=lambda runtime: (f"{runtime}",), store=stored("/a", namespace=("None",)))
    assert paths(always.ls("/")) == ["/a"]


# What belongs to a namespace


def test_wildcards_of_a_database_are_plain_letters(postgres: str) -> None:
    name = uuid.uuid4().hex
    with PostgresStore.from_conn_string(postgres) as store:
        store.setup()
        files = StoreBackend(namespace=(name, "a_b"), store=store)
        stored("/other", store=store, namespace=(name, "axb"))
        files.write("/%_", "x")
        files.write("/ab", "x")

        assert paths(files.ls("/")) == ["/%_", "/ab"]
        assert files.delete("/%_").error is None
        assert paths(files.ls("/")) == ["/ab"]


def test_what_is_no_file_spoils_nothing_else(call_mode: CallMode) -> None:
    store = stored("/good")
    for key in ("notes", "//twice", "/a/../good", "/a/", "/back\\slash", "/bell\x07"):
        store.put(NS, key, text("line"))
    store.put(NS, "/number", {"content": 5})
    store.put(NS, "/nothing", {})
    files = StoreBackend(namespace=NS, store=store)

    listed, globbed, searched = (
        call_mode.call(files, "ls", "/"),
        call_mode.call(files, "glob", "*"),
        call_mode.call(files, "grep", "line"),
    )

    assert paths(listed) == ["/good"]
    for found in (globbed, searched):
        assert [match["path"] for match in found.matches] == ["/good"]
    for found in (listed, globbed, searched):
        assert found.code == "io_error"
        assert "/number" in found.error
        assert "/nothing" in found.error
    assert call_mode.call(files, "read", "/number").code == "io_error"
    assert call_mode.call(files, "edit", "/nothing", "a", "b").code == "io_error"
    assert call_mode.call(files, "download_files", ["/number"])[0].error
    assert call_mode.call(files, "write", "/number", "x", expected_version="v").code == "stale_version"
    assert call_mode.call(files, "write", "/number", "mended").error is None
    assert call_mode.call(files, "delete", "/nothing").error is None
    assert call_mode.call(files, "ls", "/").error is None


def test_an_item_has_the_keys_of_a_file_and_an_older_form_becomes_the_new_one(call_mode: CallMode) -> None:
    store = InMemoryStore()
    store.put(NS, "/a", {"content": ["one", "two"], "created_at": "then", "extra": 1})
    files = StoreBackend(namespace=NS, store=store)

    assert call_mode.call(files, "read", "/a").file_data["content"] == "one\ntwo"
    assert call_mode.call(files, "edit", "/a", "one", "1").occurrences == 1

    item = store.get(NS, "/a")
    assert item is not None
    assert item.value.keys() == text("").keys()
    assert (item.value["content"], item.value["encoding"]) == ("1\ntwo", "utf-8")
    assert item.value["created_at"] == "then"


# What it costs


@pytest.mark.parametrize(
    ("work", "trips"),
    [
        (("read", "/d/1"), ["get 1"]),
        (("ls", "/"), ["search 1"]),
        (("glob", "*"), ["search 1"]),
        (("grep", "line"), ["search 1"]),
        (("write", "/d/1", "x"), ["get 1", "put 1"]),
        (("edit", "/d/1", "line", "x"), ["get 1", "put 1"]),
        (("delete", "/d/1"), ["get 1", "put 1"]),
        (("delete", "/d"), ["get 1", "search 1", "put 151"]),
        (("upload_files", [(f"/n/{n}", b"x") for n in range(50)]), ["get 50", "put 50"]),
        (("download_files", ["/d/1", "/d/2"]), ["get 2"]),
        (("upload_files", []), []),
        (("download_files", []), []),
    ],
)
def test_an_operation_takes_few_round_trips(call_mode: CallMode, work: Any, trips: list[str]) -> None:
    store = CountingStore()
    stored(*(f"/d/{n}" for n in range(151)), store=store)
    store.trips.clear()

    call_mode.call(StoreBackend(namespace=NS, store=store), *work)

    assert store.trips == trips


class CuttingStore(InMemoryStore):
    """Gives so many items at once, whatever is asked for, and may always begin at the first."""

    def __init__(self, most: int, *, heeds_offset: bool = True) -> None:
        super().__init__()
        self.most = most
        self.heeds_offset = heeds_offset

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return super().batch([self._cut(op) for op in ops])

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await super().abatch([self._cut(op) for op in ops])

    def _cut(self, op: Op) -> Op:
        if not isinstance(op, SearchOp):
            return op
        offset = op.offset if self.heeds_offset else 0
        return op._replace(limit=min(op.limit, self.most), offset=offset)


@pytest.mark.parametrize("most", [10, 50, 64, 100, 1000])
def test_a_store_that_gives_fewer_items_than_asked_for_is_read_to_its_end(
    call_mode: CallMode, most: int
) -> None:
    store = stored(*(f"/{n}" for n in range(250)), store=CuttingStore(most))

    assert len(paths(call_mode.call(StoreBackend(namespace=NS, store=store), "ls", "/"))) == 250


def test_a_store_that_always_gives_the_first_items_is_not_asked_without_end(call_mode: CallMode) -> None:
    store = stored(*(f"/{n}" for n in range(250)), store=CuttingStore(100, heeds_offset=False))

    assert len(paths(call_mode.call(StoreBackend(namespace=NS, store=store), "ls", "/"))) == 100


# What goes wrong


def test_a_store_that_fails_is_told_in_results_without_its_secrets(call_mode: CallMode) -> None:
    store = CountingStore()
    stored("/a", store=store)
    files = StoreBackend(namespace=NS, store=store)
    store.broken = True

    results = [
        call_mode.call(files, *work)
        for work in [
            ("ls", "/"),
            ("read", "/a"),
            ("grep", "x"),
            ("glob", "*"),
            ("write", "/a", "x"),
            ("edit", "/a", "line", "x"),
            ("delete", "/a"),
        ]
    ]
    answers = call_mode.call(files, "upload_files", [("/b", b"x"), ("~", b"x")])
    answers += call_mode.call(files, "download_files", ["/a"])

    assert [result.code for result in results] == ["io_error"] * 7
    assert all("10.1.2.3" not in each.error for each in [*results, *answers])
    assert "ConnectionError" in results[0].error
    assert [answer.error == "invalid_path" for answer in answers] == [False, True, False]
    store.broken = False
    assert call_mode.call(files, "read", "/a").error is None
