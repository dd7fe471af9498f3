from __future__ import annotations

import json
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from tests.server.serving import Process, make_key
from tests.server.test_runs import say

pytestmark = pytest.mark.slow


@contextmanager
def logging(directory: Path, **environ: str) -> Generator[tuple[str, Path]]:
    """Serve, and yield the address and what is logged; it is whole when the block has ended."""
    server = Process(directory, command="serve", config=None, **environ)
    server.log = directory / "log"
    try:
        yield server.start(), server.log
        server.end(signal.SIGTERM)
    finally:
        server.close()


def test_json_lines_name_the_request_the_run_and_the_owner(tmp_path: Path) -> None:
    key = make_key(tmp_path, "alice")
    asked = {"x-request-id": "trace-7", "x-api-key": key}
    body = {"assistant_id": "echo", "input": say("fail here")}
    environ = {"DEEPAGENTS_SERVER_LOG_FORMAT": "json", "DEEPAGENTS_SERVER_LOG_LEVEL": "info"}
    with logging(tmp_path, **environ) as (url, log):
        refused = httpx.get(f"{url}/info?token=secret", headers={"x-request-id": "two words"})
        httpx.get(f"{url}/ok")
        failed = httpx.post(f"{url}/runs/wait", json=body, headers=asked)

    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(each.keys() >= {"time", "level", "logger", "message"} for each in lines)
    accesses = [each for each in lines if each["logger"] == "deepagents.access"]
    assert [(each["path"], each["status"], each.get("owner")) for each in accesses] == [
        ("/info", 401, None),
        ("/runs/wait", 200, "alice"),
    ]
    assert re.fullmatch("[0-9a-f]{32}", refused.headers["x-request-id"])
    assert accesses[0]["request_id"] == refused.headers["x-request-id"]
    assert failed.headers["x-request-id"] == "trace-7"
    of_run = [each for each in lines if "run_id" in each]
    assert {each["request_id"] for each in of_run} == {"trace-7"}
    assert {each["owner"] for each in of_run} == {"alice"}
    assert {each["run_id"] for each in of_run} == {failed.headers["location"].split("/")[4]}
    (failure,) = [each for each in of_run if each["level"] == "warning"]
    assert "ValueError" in failure["exception"]
    assert "secret" not in log.read_text()


def test_lines_for_people_say_why_a_run_failed_and_nothing_of_what_went_well(tmp_path: Path) -> None:
    with logging(tmp_path) as (url, log), get_sync_client(url=url, api_key=None) as client:
        client.runs.wait(None, "echo", input=say("hello"))
        thread = client.threads.create()["thread_id"]
        client.runs.wait(thread, "echo", input=say("fail red \x1b[31m"), raise_error=False)

    first, *rest = log.read_text().splitlines()
    assert re.match(r"[0-9-]{10} [0-9:.]{12} WARNING deepagents.server: Run [0-9a-f-]{36} failed", first)
    assert rest[0] == "Traceback (most recent call last):"
    assert f"thread_id={thread}" in rest[-1]
    assert sum("ValueError: red" in line for line in rest) == 1
    assert "\x1b" not in log.read_text()
