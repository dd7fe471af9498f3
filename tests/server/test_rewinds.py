"""Take a thread and the files of its agent back over HTTP."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, RateLimitError, UnprocessableEntityError

from tests.server.serving import GRAPHS, Process, make_key
from tests.server.test_runs import last, say
from tests.waiting import until

pytestmark = pytest.mark.slow

_HERE = Path(__file__).with_name("keepers.py")
_SOON = {"ttl": {"sweep_interval_minutes": 0.01}}
"""How often what is old is looked for."""


@dataclass
class Workshop:
    """A server whose agents keep a directory."""

    place: Path
    url: str
    database: tuple[str, ...]
    _clients: list[SyncLangGraphClient] = field(default_factory=list[SyncLangGraphClient])

    @property
    def root(self) -> Path:
        return self.place / "project"

    def client(self, owner: str, *options: str) -> SyncLangGraphClient:
        key = make_key(self.place, owner, *self.database, *options)
        self._clients.append(get_sync_client(url=self.url, api_key=key))
        return self._clients[-1]

    def close(self) -> None:
        for each in self._clients:
            each.http.client.close()

    def count_leases(self, thread: str) -> int:
        """Return how often a thread was taken, by a run or to go back."""
        query = f"SELECT token FROM leases WHERE thread_id = '{thread}'"
        if self.database:
            with psycopg.connect(self.database[1]) as opened:
                return opened.execute(query.encode()).fetchall()[0][0]
        with closing(sqlite3.connect(self.place / ".deepagents" / "server.db")) as opened:
            return opened.execute(query).fetchall()[0][0]

    def count_records(self, thread: str) -> int:
        """Count what is kept of a thread."""
        with closing(sqlite3.connect(self.place / "history" / "files.db", timeout=30)) as database:
            return database.execute("SELECT count(*) FROM seen WHERE thread = ?", [thread]).fetchone()[0]


@contextmanager
def serving(place: Path, *database: str) -> Generator[Workshop]:
    make_key(place, "first", *database)
    names = {"keeper": "keeper", "asker": "asker", "made": "make_for_run"}
    graphs = {name: f"{_HERE}:{each}" for name, each in names.items()} | {"echo": GRAPHS["echo"]}
    config = {"graphs": graphs, "checkpointer": _SOON}
    process = Process(place, *database, config=config, KEPT=str(place))
    shop = Workshop(place, process.start(), database)
    try:
        yield shop
    finally:
        shop.close()
        process.close()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with serving(tmp_path_factory.mktemp("kept")) as shop:
        yield shop


@pytest.fixture(scope="module")
def on_postgresql(tmp_path_factory: pytest.TempPathFactory, postgres: str) -> Iterator[Workshop]:
    with psycopg.connect(postgres, autocommit=True) as opened:
        opened.execute("CREATE DATABASE keepers")
    host = dict(part.split("=") for part in postgres.split())["host"]
    place = tmp_path_factory.mktemp("kept")
    with serving(place, "--database", f"postgresql://postgres@/keepers?host={host}") as shop:
        yield shop


@pytest.fixture(params=["shop", "on_postgresql"])
def each_shop(request: pytest.FixtureRequest) -> Workshop:
    """The same on either database, where that makes a difference."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def client(shop: Workshop) -> SyncLangGraphClient:
    return shop.client(f"owner-{uuid4()}")


def begin(client: SyncLangGraphClient, *orders: str, graph: str = "keeper") -> tuple[str, str]:
    """Let an agent do something on a new thread; return it, and the checkpoint before."""
    thread = client.threads.create()["thread_id"]
    for order in orders:
        client.runs.wait(thread, graph, input=say(order))
    return thread, _history(client, thread)[-1]["checkpoint_id"]


def _history(client: SyncLangGraphClient, thread: str) -> Any:
    return client.threads.get_history(thread, limit=1000)


def look(client: SyncLangGraphClient, thread: str, checkpoint: str | None = None, **more: str) -> Any:
    params = {**({"checkpoint_id": checkpoint} if checkpoint else {}), **more}
    return client.http.get(f"/threads/{thread}/files", params=params)


def go_back(client: SyncLangGraphClient, thread: str, checkpoint: str, **more: Any) -> Any:
    return client.http.post(f"/threads/{thread}/rewind", json={"checkpoint_id": checkpoint, **more})


def messages(client: SyncLangGraphClient, thread: str) -> list[Any]:
    """Return the conversation that a thread shows, which is that of its state."""
    shown: Any = client.threads.get(thread)["values"]
    state: Any = client.threads.get_state(thread)["values"]
    assert shown.get("messages", []) == state.get("messages", [])
    return shown.get("messages", [])


def paths(changes: Any) -> list[str]:
    return [each["path"] for each in changes]


@pytest.mark.parametrize("graph", ["keeper", "made"])
def test_files_and_conversation_go_back_and_forth(
    shop: Workshop, client: SyncLangGraphClient, graph: str
) -> None:
    mine = f"mine-{graph}.txt"
    (shop.root / mine).write_text("by hand\n")
    thread, start = begin(client, f"write made-{graph}.txt 1", f"run echo 2 > {mine}", graph=graph)

    plan = look(client, thread, start)
    assert (paths(plan["restored"]), paths(plan["removed"])) == ([f"/{mine}"], [f"/made-{graph}.txt"])
    assert (plan["conflicts"], plan["not_kept"], plan["checkpoint_id"]) == ([], [], start)
    assert str(shop.place) not in str(plan)
    assert (shop.root / mine).read_text() == "2\n"

    done = go_back(client, thread, start, plan=plan["plan"])
    assert sorted(done["changed"]) == [f"/made-{graph}.txt", f"/{mine}"]
    assert (shop.root / mine).read_text() == "by hand\n"
    assert not (shop.root / f"made-{graph}.txt").exists()
    assert not messages(client, thread)
    assert client.threads.get_state(thread)["checkpoint"] == done["checkpoint"]

    again = go_back(client, thread, done["left"]["checkpoint_id"], rewind_id=done["rewind_id"])
    assert sorted(again["changed"]) == sorted(done["changed"])
    assert (shop.root / mine).read_text() == "2\n"
    assert last(client.threads.get(thread)["values"]) == "Done."
    assert last(client.runs.wait(thread, graph, input=say("run true"))) == "Done."


def test_either_half_goes_back_alone(shop: Workshop, client: SyncLangGraphClient) -> None:
    thread, start = begin(client, "write half.txt 1")

    done = go_back(client, thread, start, conversation=False)
    assert done["checkpoint"] == done["left"]
    assert not (shop.root / "half.txt").exists()
    assert last(client.threads.get(thread)["values"]) == "Done."
    at = done["checkpoint_id"]
    assert paths(look(client, thread, at, rewind_id=done["rewind_id"])["restored"]) == ["/half.txt"]
    go_back(client, thread, at, rewind_id=done["rewind_id"])
    assert (shop.root / "half.txt").read_text() == "1"
    go_back(client, thread, start, files=False)
    assert (shop.root / "half.txt").read_text() == "1"
    assert not messages(client, thread)
    assert look(client, thread)["removed"] == []


def test_a_history_that_is_gone_is_said_without_its_place(tmp_path: Path) -> None:
    with serving(tmp_path) as shop:
        client = shop.client("owner")
        thread, start = begin(client, "write a.txt 1")
        done = go_back(client, thread, start)
    (tmp_path / "history").rename(tmp_path / "away")
    gone = "the history in its directory is not the one"
    unknown = "not all is known any more that this going back has changed, and the rest stays as it is"
    left, forth = done["left"]["checkpoint_id"], {"rewind_id": done["rewind_id"]}
    with serving(tmp_path) as shop:
        client = shop.client("owner")
        forwards = look(client, thread, left, **forth)
        forwards_done = go_back(client, thread, left, **forth)
        backwards = look(client, thread, start)
        backwards_done = go_back(client, thread, start)
    for said in (forwards, forwards_done):
        assert said["uncovered"] == [unknown]
    for said in (backwards, backwards_done):
        assert any(each.startswith(gone) for each in said["uncovered"])
    for plan in (forwards, backwards):
        assert (plan["removed"], plan["restored"], str(tmp_path) in str(plan)) == ([], [], False)


def test_what_others_changed_stays_unless_it_is_named(shop: Workshop, client: SyncLangGraphClient) -> None:
    thread, start = begin(client, "run echo 1 > one.txt; echo 1 > two.txt")
    (shop.root / "one.txt").write_text("by hand\n")
    (shop.root / "two.txt").write_text("by hand\n")

    plan = look(client, thread, start)
    assert paths(plan["conflicts"]) == ["/one.txt", "/two.txt"]
    assert plan["conflicts"][0] == {
        "path": "/one.txt", "kind": "file", "reason": "changed by others since",
    }  # fmt: skip
    for wrong in ({"/three.txt": "take"}, {str(shop.root / "one.txt"): "take"}, "all", {"/one.txt": "all"}):
        with pytest.raises(UnprocessableEntityError, match="conflicts"):
            go_back(client, thread, start, conflicts=wrong)
    done = go_back(client, thread, start, conflicts={"/one.txt": "take"})
    assert (done["changed"], done["kept"], done["failed"]) == (["/one.txt"], ["/two.txt"], [])
    assert not (shop.root / "one.txt").exists()
    assert (shop.root / "two.txt").read_text() == "by hand\n"


def test_a_plan_that_was_looked_at_binds(shop: Workshop, client: SyncLangGraphClient) -> None:
    thread, start = begin(client, "write bound.txt 1")
    plan = look(client, thread, start)["plan"]
    (shop.root / "bound.txt").write_text("by hand\n")

    with pytest.raises(ConflictError, match="changed since the plan"):
        go_back(client, thread, start, plan=plan, conflicts="take")
    assert (shop.root / "bound.txt").read_text() == "by hand\n"
    assert last(client.threads.get(thread)["values"]) == "Done."
    plan = look(client, thread, start)["plan"]
    assert look(client, thread, start)["plan"] == plan
    assert go_back(client, thread, start, plan=plan, conflicts="take")["changed"] == ["/bound.txt"]


def test_no_thread_goes_back_while_it_is_busy(each_shop: Workshop) -> None:
    shop, client = each_shop, each_shop.client(f"owner-{uuid4()}")
    thread, start = begin(client, "write busy.txt 1")
    wait = "run touch begun; while [ ! -e go-on ]; do sleep 0.05; done"
    run = client.runs.create(thread, "keeper", input=say(wait))
    other, of_other = begin(client, "write beside.txt 1", graph="asker")
    until((shop.root / "begun").exists)

    for half in ({}, {"files": False}, {"conversation": False}):
        with pytest.raises(ConflictError, match="busy with a run"):
            go_back(client, thread, start, **half)
    assert paths(look(client, thread, start)["removed"]) == ["/begun", "/busy.txt"]
    (shop.root / "go-on").touch()
    client.runs.join(thread, run["run_id"])
    go_back(client, thread, start)
    assert not (shop.root / "busy.txt").exists()
    assert client.threads.get(other)["status"] == "interrupted"
    assert look(client, other, of_other)["removed"] == []


def test_no_thread_goes_back_beside_the_step_of_another(shop: Workshop, client: SyncLangGraphClient) -> None:
    thread, start = begin(client, "write near.txt 1")
    wait = "run touch near-begun; while [ ! -e near-on ]; do sleep 0.05; done"
    other = client.threads.create()["thread_id"]
    run = client.runs.create(other, "keeper", input=say(wait))
    until((shop.root / "near-begun").exists)

    with pytest.raises(ConflictError, match="under way in the directory"):
        go_back(client, thread, start)
    assert (shop.root / "near.txt").exists()
    (shop.root / "near-on").touch()
    client.runs.join(other, run["run_id"])
    assert go_back(client, thread, start)["changed"] == ["/near.txt"]


def test_a_run_that_begins_meanwhile_keeps_its_thread(each_shop: Workshop) -> None:
    """What goes back is held by the history, which somebody else writes; the run does not need that."""
    shop, client = each_shop, each_shop.client(f"owner-{uuid4()}")
    thread, start = begin(client, "write raced.txt 1")
    with closing(sqlite3.connect(shop.place / "history" / "files.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as pool:
            going = pool.submit(go_back, client, thread, start)
            until(lambda: shop.count_leases(thread), lambda count: count > 1)
            client.runs.wait(thread, "echo", input=say("hello"))
            database.execute("ROLLBACK")
            with pytest.raises(ConflictError):
                going.result(60)
    assert (shop.root / "raced.txt").read_text() == "1"
    assert last(client.threads.get(thread)["values"]) == "Echo: hello"


def test_a_question_is_taken_back_and_asked_again(shop: Workshop, client: SyncLangGraphClient) -> None:
    thread, start = begin(client, "write asked.txt 1", graph="asker")
    assert client.threads.get(thread)["status"] == "interrupted"

    done = go_back(client, thread, start)
    shown: Any = client.threads.get(thread)
    assert shown["interrupts"] == {}
    go_back(client, thread, done["left"]["checkpoint_id"])
    # A step that waits in the middle is done anew.
    client.runs.wait(thread, "asker")
    shown = client.threads.get(thread)
    assert (shown["status"], len(shown["interrupts"])) == ("interrupted", 1)
    client.runs.wait(thread, "asker", command={"resume": {"decisions": [{"type": "approve"}]}})
    assert (shop.root / "asked.txt").read_text() == "1"


def test_what_is_not_there_is_refused_by_name(client: SyncLangGraphClient) -> None:
    thread, start = begin(client, "run true")
    plain, of_plain = begin(client, "hello", graph="echo")
    empty = client.threads.create(graph_id="keeper")["thread_id"]
    nobody = client.threads.create()["thread_id"]

    for where, checkpoint, said in (
        (thread, "nowhere", "has no checkpoint 'nowhere'"),
        (thread, of_plain, "has no checkpoint"),
        (empty, start, "has no checkpoint"),
        (plain, of_plain, "keeps no history of files"),
        (nobody, start, "keeps no history of files"),
    ):
        with pytest.raises(UnprocessableEntityError, match=said):
            look(client, where, checkpoint)
        with pytest.raises(UnprocessableEntityError, match=said):
            go_back(client, where, checkpoint)
    with pytest.raises(UnprocessableEntityError, match="no checkpoint yet"):
        look(client, empty)
    for body in (None, {}, {"checkpoint_id": 1}, {"checkpoint_id": start, "files": "no way"}):
        with pytest.raises(UnprocessableEntityError):
            client.http.post(f"/threads/{thread}/rewind", json=body)
    assert go_back(client, thread, start, rewind_id="unknown")["changed"] == []


def test_threads_of_others_are_not_there(each_shop: Workshop) -> None:
    shop, client = each_shop, each_shop.client(f"owner-{uuid4()}")
    thread, start = begin(client, "write hers.txt 1")
    other = shop.client("stranger")

    for ask in (look, go_back):
        with pytest.raises(NotFoundError):
            ask(other, thread, start)
    mine, _ = begin(other, "run true")
    with pytest.raises(UnprocessableEntityError, match="no checkpoint"):
        go_back(other, mine, start)
    assert (shop.root / "hers.txt").exists()


def test_who_keeps_as_much_as_he_may_does_not_go_back(shop: Workshop) -> None:
    client = shop.client("full", "--megabytes", "1")
    thread, start = begin(client, "write full.txt 1")
    client.store.put_item(("large",), "item", {"text": secrets.token_hex(800_000)})

    def is_full() -> bool:
        try:
            client.threads.create()
        except RateLimitError:
            return True
        return False

    until(is_full)
    with pytest.raises(RateLimitError, match="1.* of 1 MB"):
        go_back(client, thread, start)
    assert (shop.root / "full.txt").exists()


@pytest.mark.parametrize("how", ["delete", "prune", "age"])
def test_what_is_kept_of_a_thread_goes_with_it(each_shop: Workshop, how: str) -> None:
    shop, client = each_shop, each_shop.client(f"owner-{uuid4()}")
    thread, _ = begin(client, f"write {how}.txt 1")
    other, start = begin(client, f"write {how}-other.txt 1")
    assert shop.count_records(thread) == 1
    match how:
        case "delete":
            client.threads.delete(thread)
        case "prune":
            client.threads.prune([thread])
        case _:
            client.http.patch(f"/threads/{thread}", json={"ttl": 0.0001})
            until(lambda: not shop.count_records(thread))
    assert shop.count_records(thread) == 0
    assert paths(look(client, other, start)["removed"]) == [f"/{how}-other.txt"]


def test_a_copied_thread_keeps_its_points(each_shop: Workshop) -> None:
    shop, client = each_shop, each_shop.client(f"owner-{uuid4()}")
    thread, start = begin(client, "write copied.txt 1")
    copy: Any = client.threads.copy(thread)
    client.threads.delete(thread)

    assert paths(look(client, copy["thread_id"], start)["removed"]) == ["/copied.txt"]
    go_back(client, copy["thread_id"], start)
    assert not (shop.root / "copied.txt").exists()
