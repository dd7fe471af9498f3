from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient
from prometheus_client.parser import text_string_to_metric_families

from tests.server.serving import Process, make_key
from tests.server.test_runs import say
from tests.waiting import until

pytestmark = pytest.mark.slow

Series = Callable[..., float]
"""What is counted under a name and labels; nothing is 0."""


def scrape(url: str, **headers: str) -> Series:
    """Read the metrics as Prometheus does."""
    answer = httpx.get(url, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    samples = [each for family in text_string_to_metric_families(answer.text) for each in family.samples]

    def read(name: str, **labels: str) -> float:
        return sum(
            each.value
            for each in samples
            if each.name == f"deepagents_{name}" and labels.items() <= each.labels.items()
        )

    return read


def test_runs_models_and_requests_are_counted(url: str, sync_client: SyncLangGraphClient) -> None:
    before = scrape(f"{url}/metrics")
    thread = sync_client.threads.create()["thread_id"]
    sync_client.runs.wait(thread, "metered", input=say("Count."))
    sync_client.runs.wait(thread, "echo", input=say("fail now"), raise_error=False)
    httpx.request("BREW", f"{url}/nowhere/{uuid4()}", headers={"x-request-id": "a b"})

    after = scrape(f"{url}/metrics")

    def grown(name: str, **labels: str) -> float:
        return after(name, **labels) - before(name, **labels)

    assert grown("run_seconds_count", graph="metered", status="success") == 1
    assert grown("run_seconds_count", graph="echo", status="error") == 1
    assert grown("run_errors_total", graph="echo", kind="ValueError") == 1
    assert grown("run_wait_seconds_count") == grown("first_event_seconds_count") == 2
    assert grown("tokens_total", model="claude-sonnet-4-6") == 2_000_000
    assert grown("model_call_seconds_count", model="claude-sonnet-4-6") == 1
    assert grown("requests_total", route="/threads/{thread_id}/runs/wait", method="POST", status="200") == 2
    assert grown("requests_total", route="other", method="other") == 1
    assert grown("request_seconds_count", route="/threads/{thread_id}/runs/wait") == 2
    assert after("connections") >= 1
    assert after("open_requests") >= 1


def test_what_models_cost_is_counted_by_the_list_of_prices(
    url: str, sync_client: SyncLangGraphClient
) -> None:
    def cost() -> float:
        return scrape(f"{url}/metrics")("cost_usd_total", model="claude-sonnet-4-6")

    before = cost()
    sync_client.runs.wait(None, "metered", input=say("Count."))

    # It is worked out in the background, since the list has to be read first.
    assert until(lambda: cost() - before) >= 15


async def test_the_age_of_the_queue_is_that_of_its_first_run(url: str, client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    first = await client.runs.create(thread, "echo", input=say(f"wait {uuid4()}"))
    waiting = await client.runs.create(thread, "echo", input=say("hello"))

    assert scrape(f"{url}/metrics")("queue_age_seconds") > 0
    for run in (waiting, first):
        await client.runs.cancel(thread, run["run_id"], wait=True)


def test_variables_say_who_sees_metrics_and_how_large_a_body_may_be(tmp_path: Path) -> None:
    sent = {"authorization": f"Bearer {make_key(tmp_path, 'prometheus')}"}
    server = Process(tmp_path, DEEPAGENTS_SERVER_OPERATOR="prometheus", DEEPAGENTS_SERVER_MAX_BODY="2kB")
    try:
        url = server.start()
        refused = httpx.post(f"{url}/threads", json={"metadata": {"a": "b" * 2000}}, headers=sent)

        assert (refused.status_code, refused.json()["detail"]) == (413, "A body may have 2,000 bytes.")
        assert scrape(f"{url}/metrics", **sent)("requests_total", route="/threads", status="413") == 1
    finally:
        server.close()


@pytest.mark.slow
def test_a_worker_shows_metrics_of_its_own(postgres: str, tmp_path: Path) -> None:
    host = dict(part.split("=") for part in postgres.split())["host"]
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    database = f"postgresql://postgres@/postgres?host={host}"
    worker = Process(tmp_path, "--metrics", str(port), command="worker", DEEPAGENTS_SERVER_DATABASE=database)
    try:
        worker.start()

        assert scrape(f"http://127.0.0.1:{port}/metrics")("connections") == 0
        assert worker.end(signal.SIGTERM) == 0
    finally:
        worker.close()
