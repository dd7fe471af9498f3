"""Code of the user that blocks: handlers do so in a thread, and what blocks the event loop is named."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.server.serving import Process
from tests.server.test_runs import say

pytestmark = pytest.mark.slow

AUTH = """
import threading
from langgraph_sdk import Auth

auth = Auth()
met = threading.Event()


@auth.authenticate
def authenticate(authorization):
    name = (authorization or "").removeprefix("Bearer ")
    if name == "slow" and not met.wait(60):
        raise Auth.exceptions.HTTPException(status_code=401)
    met.set()
    return name
"""
AGENT = """
import time
from pathlib import Path
from langgraph.graph import START, MessagesState, StateGraph


async def hold(state):
    while not Path("go").exists():
        time.sleep(0.05)


agent = StateGraph(MessagesState).add_node(hold).add_edge(START, "hold").compile()
"""


def test_a_handler_that_waits_lets_others_in(tmp_path: Path) -> None:
    (tmp_path / "auth.py").write_text(AUTH)
    process = Process(tmp_path, config={"auth": {"path": "./auth.py:auth"}})
    url = process.start()

    def ask(name: str) -> int:
        headers = {"authorization": f"Bearer {name}"}
        return httpx.post(f"{url}/threads", json={}, headers=headers, timeout=90).status_code

    with ThreadPoolExecutor() as threads:
        slow = threads.submit(ask, "slow")
        assert ask("quick") == 200
        assert slow.result() == 200
    assert process.end(signal.SIGTERM) == 0


def test_what_blocks_all_is_named_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "holding.py").write_text(AGENT)
    process = Process(tmp_path, config={"graphs": {"agent": "./holding.py:agent"}})
    process.log = tmp_path / "log"
    url = process.start()

    def run() -> int:
        asked = {"assistant_id": "agent", "input": say("hello")}
        return httpx.post(f"{url}/runs/wait", json=asked, timeout=90).status_code

    with ThreadPoolExecutor() as threads:
        running = threads.submit(run)
        while "blocks the event loop" not in (log := process.log.read_text()):
            time.sleep(0.05)
        (tmp_path / "go").touch()
        assert running.result() == 200
    assert process.end(signal.SIGTERM) == 0
    (line,) = (line for line in log.splitlines() if "blocks the event loop" in line)
    assert 'holding.py", line 9 in hold' in line
