"""Which run begins first, and how many at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.server.serving import Process, make_key
from tests.server.test_runs import last, say


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path, "--runs", "3", "--runs-per-owner", "1")
    yield process
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
