"""What an owner may use is counted over all their runs, and refused with a word on when there is more."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import RateLimitError

from deepagents.testing import ScriptedModel
from deepagents_cli.__main__ import main
from deepagents_server.database import open_database
from deepagents_server.database.quotas import Quota, list_quotas, set_quota
from deepagents_server.runs.spending import Spending
from tests.server.serving import Process, make_key
from tests.server.test_runs import last, say

pytestmark = pytest.mark.slow


@dataclass
class Shop:
    """A server with keys, and its commands."""

    place: Path
    url: str

    def client(self, owner: str, *options: str) -> SyncLangGraphClient:
        """Make a key with a quota, and a client that has it."""
        return get_sync_client(url=self.url, api_key=make_key(self.place, owner, *options))

    def used(self, owner: str) -> int:
        """Return how many tokens an owner has used."""
        with closing(sqlite3.connect(self.place / ".deepagents" / "server.db")) as database:
            rows = database.execute("SELECT used_tokens FROM quotas WHERE owner = ?", [owner]).fetchall()
        return rows[0][0]

    def keys(self, *arguments: str) -> int:
        """Run a command on its keys."""
        return main(["keys", *arguments, "--database", str(self.place / ".deepagents" / "server.db")])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    place = tmp_path_factory.mktemp("shop")
    make_key(place, "first")
    process = Process(place)
    yield Shop(place, process.start())
    process.close()


def test_only_so_many_runs_wait_or_work_at_once(shop: Shop) -> None:
    with shop.client("ann", "--runs", "1") as client, shop.client("ben") as other:
        thread = client.threads.create()["thread_id"]
        client.runs.create(thread, "echo", input=say("wait for-ann"))

        with pytest.raises(RateLimitError, match="1 runs wait or work, of 1"):
            client.runs.create(None, "echo", input=say("hello"))
        with pytest.raises(RateLimitError):
            client.runs.create(thread, "echo", input=say("hello"))
        assert last(other.runs.wait(None, "echo", input=say("hello"))) == "Echo: hello"
        # What takes the place of another needs no further room.
        values: Any = client.runs.wait(thread, "echo", input=say("instead"), multitask_strategy="interrupt")
        assert last(values) == "Echo: instead"
        assert last(client.runs.wait(None, "echo", input=say("again"))) == "Echo: again"


def test_what_an_owner_keeps_has_bounds(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """Also others' items are looked after: what one keeps is not another's."""
    database = ("--database", str(shop.place / ".deepagents" / "server.db"))
    with shop.client("eve", "--schedules", "1", "--megabytes", "1") as client, shop.client("fay") as other:
        client.crons.create("echo", schedule="0 9 * * 1")
        with pytest.raises(RateLimitError, match="There are 1 schedules"):
            client.crons.create("echo", schedule="0 9 * * 2")
        client.store.put_item(["notes"], "long", {"text": "x" * 1_200_000})
        thread = client.threads.create()["thread_id"]

        assert main(["db", "prune", "--keep-threads", "365", *database]) == 0

        asked = (
            lambda: client.threads.create(),
            lambda: client.store.put_item(["notes"], "short", {}),
            lambda: client.runs.create(thread, "echo", input=say("hello")),
            lambda: client.threads.update(thread, metadata={"more": "text"}),
            lambda: client.threads.update_state(thread, {"steps": ["more"]}),
        )
        for ask in asked:
            with pytest.raises(RateLimitError, match=r"Kept are 1\.2 of 1 MB; remove threads or items"):
                ask()
        assert last(other.runs.wait(None, "echo", input=say("hello"))) == "Echo: hello"
        client.store.delete_item(["notes"], "long")
        assert main(["db", "prune", "--keep-threads", "365", *database]) == 0
        assert last(client.runs.wait(thread, "echo", input=say("hello"))) == "Echo: hello"
    capsys.readouterr()
    assert shop.keys("list") == 0
    assert re.search(r"eve may use: 1 schedules, 0\.\d of 1 MB", capsys.readouterr().out)


def test_tokens_come_back_when_their_time_is_over(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    with shop.client("cat", "--tokens", "1000000", "--per", "hour") as client:
        assert last(client.runs.wait(None, "deep", input=say("hello"))) == "Thirteen metres."
        # What is left is too little for any request to a model.
        few = shop.used("cat") + 1000
        assert shop.keys("limit", "cat", "--tokens", str(few), "--per", "hour") == 0

        with pytest.raises(RateLimitError, match=f"of {few:,} tokens; more is possible from 20") as refused:
            client.runs.create(None, "echo", input=say("hello"))

        assert 0 < int(refused.value.response.headers["retry-after"]) <= 3600
        command = {"id": 1, "method": "run.start", "params": {"assistant_id": "echo"}}
        sent = {"x-api-key": make_key(shop.place, "cat")}
        told = httpx.post(f"{shop.url}/threads/{uuid4()}/commands", json=command, headers=sent)
        assert (told.status_code, told.json()["error"]) == (429, "permission_denied")
        assert 0 < int(told.headers["retry-after"]) <= 3600
        shop.keys("list")
        assert re.search(r"cat may use: [\d,]+ of [\d,]+ tokens per hour", capsys.readouterr().out)
        with closing(sqlite3.connect(shop.place / ".deepagents" / "server.db")) as database:
            database.execute("UPDATE quotas SET began_at = began_at - 3600")
            database.commit()
        assert client.runs.wait(None, "echo", input=say("hello"))
        assert shop.keys("limit", "cat", "--tokens", "1000000") == 0
        assert client.runs.wait(None, "deep", input=say("hello"))


def test_a_run_ends_where_the_rest_of_a_quota_does(shop: Shop) -> None:
    with shop.client("dan", "--tokens", "1100") as client:
        thread = client.threads.create()["thread_id"]
        run = client.runs.create(thread, "obedient", input=say("execute true"))

        client.runs.join(thread, run["run_id"])

        ended: Any = client.runs.get(thread, run["run_id"])
        assert (ended["status"], ended["error"]["error"]) == ("error", "LimitExceeded")


def test_runs_that_began_at_once_do_not_use_the_same_rest(shop: Shop) -> None:
    """Each alone would have had enough."""
    with shop.client("fay", "--tokens", "1000000") as fay, shop.client("ben") as other:

        def open_gate(name: str) -> None:
            other.runs.wait(None, "gate", input=say(name))

        def begin(name: str) -> tuple[str, str]:
            thread = fay.threads.create()["thread_id"]
            run = fay.runs.create(
                thread, "waiter", input=say(name), stream_mode="custom", stream_resumable=True
            )
            for part in fay.runs.join_stream(thread, run["run_id"], last_event_id="-1"):
                if part.event == "custom":
                    break
            return thread, run["run_id"]

        open_gate("quota 0")
        fay.runs.join(*begin("quota 0"))
        # Enough for the two halves of one and the first of the other, and for a short answer each time.
        used = shop.used("fay")
        assert shop.keys("limit", "fay", "--tokens", str(used * 11 // 4 + 1024)) == 0

        both = [begin(name) for name in ("quota 1", "quota 2")]
        for name, run in zip(("quota 1", "quota 2"), both, strict=True):
            open_gate(name)
            fay.runs.join(*run)

        ended: Any = [fay.runs.get(*run) for run in both]
        assert [each["status"] for each in ended] == ["success", "error"]
        assert ended[1]["error"]["error"] == "LimitExceeded"


def test_money_is_counted_by_the_prices_of_models(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    with shop.client("eve", "--cost", "3", "--per", "month") as client:
        assert last(client.runs.wait(None, "priced", input=say("hello"))) == "Two guineas."

        stopped = last(client.runs.wait(None, "priced", input=say("hello")))
        assert stopped.startswith("[Stopped at a limit: too little of the limit of 1.")
    capsys.readouterr()
    shop.keys("list")
    assert re.search(r"eve may use: .*\b1\.\d+ of 3 in cost per month", capsys.readouterr().out)


def test_who_has_no_name_has_no_quota(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert shop.keys("limit", "*", "--runs", "1") == 2
    assert "name of an owner" in capsys.readouterr().err


def test_a_crash_lets_nothing_count_twice_or_never(tmp_path: Path) -> None:
    keys = [make_key(tmp_path, owner, "--tokens", "1000000") for owner in ("calm", "lost")]
    lifted = tmp_path / "lifted"
    process = Process(tmp_path, LIFTED=str(lifted))
    try:
        with get_sync_client(url=process.start(), api_key=keys[1]) as lost:
            thread = lost.threads.create()["thread_id"]
            stream = lost.runs.stream(thread, "lifter", input=say("lift"), stream_mode="custom")
            assert any(part.data == {"lifting": "heavy"} for part in stream)
            process.end(SIGKILL)
        url = process.start()
        with get_sync_client(url=url, api_key=keys[1]) as lost:
            (run,) = lost.runs.list(thread)
            assert last(lost.runs.join(thread, run["run_id"])) == "Both are up."
        lifted.with_name("go").touch()
        with get_sync_client(url=url, api_key=keys[0]) as calm:
            calm.runs.wait(None, "lifter", input=say("lift"))
        with closing(sqlite3.connect(tmp_path / ".deepagents" / "server.db")) as database:
            used = dict(database.execute("SELECT owner, used_tokens FROM quotas").fetchall())
        assert used["lost"] == used["calm"] > 0
    finally:
        process.close()


async def test_a_run_that_is_cancelled_counts_what_it_spent_once(tmp_path: Path) -> None:
    """Wherever that finds it while it writes what it has spent."""
    async with open_database(f"sqlite:///{tmp_path / 'server.db'}") as database:
        await set_quota(database, "ann", Quota(tokens=10_000))
        once = 0
        for steps in range(12):
            spending = Spending(database, "ann")
            async with spending.count():
                await ScriptedModel(always=lambda asked: "Thirteen metres.").ainvoke("How high?")
                noting = asyncio.ensure_future(spending.note())
                for _ in range(steps):
                    await asyncio.sleep(0)
                noting.cancel()
                await asyncio.wait([noting])
            await spending.note()

            (quota,) = await list_quotas(database)
            once = once or quota["used_tokens"]
            assert quota["used_tokens"] == once * (steps + 1) > 0
