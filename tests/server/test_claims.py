"""Which run begins first, and how many at once."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from deepagents_cli.__main__ import main
from tests.server.serving import Process, make_key
from tests.server.test_runs import last, say

pytestmark = pytest.mark.slow


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path, "--runs", "3", "--runs-per-owner", "1")
    yield process
    process.close()


Start = Callable[..., str]
"""Starts a server with some options, and returns its address."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Process] = []

    def start_one(*options: str) -> str:
        started.append(Process(tmp_path, *options))
        return started[-1].start()

    yield start_one
    for process in started:
        process.close()


def begin(client: SyncLangGraphClient, text: str, **fields: Any) -> tuple[str, str]:
    thread = client.threads.create()["thread_id"]
    made = client.runs.create(
        thread, "echo", input=say(text), stream_mode="custom", stream_resumable=True, **fields
    )
    return thread, made["run_id"]


def test_the_urgent_runs_of_an_owner_come_first_and_others_do_not_wait(
    process: Process, tmp_path: Path
) -> None:
    ann, ben = make_key(tmp_path, "ann"), make_key(tmp_path, "ben")
    url = process.start()
    with get_sync_client(url=url, api_key=ann) as hers, get_sync_client(url=url, api_key=ben) as his:
        asked: Any = hers.runs.wait(hers.threads.create()["thread_id"], "echo", input=say("ask Why?"))
        assert asked["__interrupt__"][0]["value"] == "Why?", "to wait for a person is not to be at work"
        working = begin(hers, "wait for ever")
        for part in hers.runs.join_stream(*working, last_event_id="-1"):
            if part.event == "custom":
                break
        usual = begin(hers, "usual")
        urgent = begin(hers, "urgent", metadata={"priority": 5})

        assert last(his.runs.wait(None, "echo", input=say("hello"))) == "Echo: hello"
        assert hers.runs.get(*usual)["status"] == hers.runs.get(*urgent)["status"] == "pending"

        hers.runs.cancel(*working, wait=True)
        hers.runs.join(*usual)

        ended = [hers.runs.get(*each) for each in (urgent, usual)]
        assert [each["status"] for each in ended] == ["success", "success"]
        assert ended[0]["updated_at"] < ended[1]["updated_at"]
        with pytest.raises(Exception, match="whole number from -10 to 10"):
            begin(hers, "now", metadata={"priority": 11})


def begin_all(client: SyncLangGraphClient, text: str, number: int, **fields: Any) -> list[tuple[str, str]]:
    return [begin(client, f"{text} {each}", **fields) for each in range(number)]


def statuses(client: SyncLangGraphClient, runs: list[tuple[str, str]]) -> Counter[str]:
    return Counter(str(client.runs.get(*each)["status"]) for each in runs)


def test_an_urgent_run_does_not_pass_another_of_its_thread(start: Start) -> None:
    """And what waits for a busy thread takes no room from others."""
    with get_sync_client(url=start("--runs", "2"), api_key=None) as client:
        working, busy = begin(client, "wait for ever"), begin(client, "wait for me")
        behind = client.runs.create(working[0], "echo", input=say("hello"), metadata={"priority": 10})
        usual = begin(client, "usual")
        urgent = client.runs.create(usual[0], "echo", input=say("urgent"), metadata={"priority": 10})

        client.runs.cancel(*busy)
        values: Any = client.runs.join(usual[0], urgent["run_id"])

        contents = [each["content"] for each in values["messages"]]
        assert contents == ["usual", "Echo: usual", "urgent", "Echo: urgent"]
        assert client.runs.get(working[0], behind["run_id"])["status"] == "pending"
        client.runs.cancel(*working)
        client.runs.join(working[0], behind["run_id"])


def test_owners_share_a_worker_however_many_one_has_waiting(start: Start, tmp_path: Path) -> None:
    """Nor does it help to call them urgent."""
    ann, ben = make_key(tmp_path, "ann"), make_key(tmp_path, "ben")
    url = start("--runs", "1")
    with get_sync_client(url=url, api_key=ann) as hers, get_sync_client(url=url, api_key=ben) as his:
        working = begin(hers, "wait for ever")
        many = begin_all(hers, "hello", 30, metadata={"priority": 10})
        few = begin_all(his, "hello", 2)

        hers.runs.cancel(*working)
        for run in few:
            his.runs.join(*run)

        assert statuses(hers, many)["pending"], "of 30 of hers, some wait while his two have ended"


def test_the_last_place_of_a_worker_is_for_those_who_have_none_at_work(start: Start, tmp_path: Path) -> None:
    ann, ben = make_key(tmp_path, "ann"), make_key(tmp_path, "ben")
    url = start("--runs", "10")
    with get_sync_client(url=url, api_key=ann) as hers, get_sync_client(url=url, api_key=ben) as his:
        many = begin_all(hers, "wait for ever", 12)

        assert last(his.runs.wait(None, "echo", input=say("hello"))) == "Echo: hello"
        assert statuses(hers, many) == {"running": 9, "pending": 3}


def test_an_owner_has_so_many_runs_at_work_and_no_more_on_all_machines(postgres: str, tmp_path: Path) -> None:
    """The runs of others do not wait behind them."""
    address, name = postgres, f"limited_{uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    host = dict(part.split("=") for part in address.split())["host"]
    options = ("--database", f"postgresql://postgres@/{name}?host={host}", "--runs-per-owner", "2")
    assert main(["db", "migrate", *options[:2]]) == 0
    ann, ben = (make_key(tmp_path, owner, *options[:2]) for owner in ("ann", "ben"))
    server, worker = Process(tmp_path, *options), Process(tmp_path, *options, command="worker")
    url = server.start()
    worker.start()
    with get_sync_client(url=url, api_key=ann) as hers, get_sync_client(url=url, api_key=ben) as his:
        many = begin_all(hers, "wait for ever", 6)
        for _ in range(4):
            assert last(his.runs.wait(None, "echo", input=say("hello"))) == "Echo: hello"
        while statuses(hers, many)["running"] < 2:
            time.sleep(0.05)
        assert statuses(hers, many) == {"running": 2, "pending": 4}

        (first, *_) = (run for run in many if hers.runs.get(*run)["status"] == "running")
        hers.runs.cancel(*first, wait=True)
        while statuses(hers, many)["running"] < 2:
            time.sleep(0.05)
        assert statuses(hers, many) == {"interrupted": 1, "running": 2, "pending": 3}
    server.close()
    worker.close()


def test_a_run_that_is_to_begin_later_begins_then_and_its_thread_is_free_until_then(
    process: Process, tmp_path: Path
) -> None:
    """Also where the server ends before: it begins after the restart."""
    with get_sync_client(url=process.start(), api_key=None) as client:
        thread, run = begin(client, "later", after_seconds=4)
        values = client.runs.wait(thread, "echo", input=say("now"))
        assert last(values) == "Echo: now"
        assert client.runs.get(thread, run)["status"] == "pending"
        process.end(signal.SIGKILL)
    with get_sync_client(url=process.start(), api_key=None) as client:
        values: Any = client.runs.join(thread, run)
        contents = [each["content"] for each in values["messages"]]
        assert contents == ["now", "Echo: now", "later", "Echo: later"]
        shown: Any = client.runs.get(thread, run)
        created, ended = (datetime.fromisoformat(shown[f"{name}_at"]) for name in ("created", "updated"))
        assert ended - created > timedelta(seconds=4)
