"""Machines whose clocks differ, and are set: what is newest never follows from them."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.server.serving import GRAPHS, serving
from tests.server.test_runs import last, say

pytestmark = pytest.mark.slow

_SKEWS = (2, 20, 3600, -2, -20, -3600, 0)
_THREADS = int(os.environ.get("CLOCK_THREADS", "1"))


@pytest.fixture(scope="module")
def maker() -> Iterator[socket.socket]:
    """Return who makes machines: one process has imported all that they need, with clocks that turn."""
    program = Path(__file__).with_name("skewed.py")
    asking, asked = socket.socketpair()
    environ = {**os.environ, "PYTHONPATH": str(program.parents[2])}
    with asking:
        given = [sys.executable, str(program), str(asked.fileno())]
        process = subprocess.Popen(given, env=environ, pass_fds=[asked.fileno()])
        asked.close()
        yield asking
    process.wait()


class Machine:
    """A server, or a worker, on a machine with a clock of its own."""

    def __init__(self, maker: socket.socket, directory: Path, *options: str) -> None:
        directory.mkdir(exist_ok=True)
        (directory / "langgraph.json").write_text(json.dumps({"graphs": GRAPHS}))
        self._clock = directory / "clock"
        self._maker, self._place, self._options = maker, directory, options

    def set_clock(self, seconds: int) -> None:
        """Let its clock be wrong by so much."""
        part = self._clock.with_suffix(".part")
        part.write_text(str(seconds))
        part.rename(self._clock)

    @contextmanager
    def serving(self) -> Generator[SyncLangGraphClient]:
        """Serve until the block ends, and yield a client."""
        with (
            self.running("serve", "--port", "0") as said,
            get_sync_client(url=said.split()[-1], api_key=None) as client,
        ):
            yield client

    @contextmanager
    def running(self, *command: str) -> Generator[str]:
        """Run a command until the block ends, and yield its first line."""
        asked = {
            "clock": str(self._clock),
            "place": str(self._place),
            "environ": {**os.environ, "LIFTED": str(self._place / "lifted")},
            "command": [*command, *self._options],
        }
        reading, writing = os.pipe()
        with os.fdopen(reading) as output:
            try:
                socket.send_fds(self._maker, [json.dumps(asked).encode()], [writing])
            finally:
                os.close(writing)
            machine = int(self._maker.recv(100))
            try:
                said = output.readline()
                assert said.startswith(("Serving ", "Working ")), said
                yield said
            finally:
                os.kill(machine, signal.SIGTERM)
                output.read()


def texts(client: SyncLangGraphClient, thread: str) -> list[str]:
    values: Any = client.threads.get_state(thread)["values"]
    return [each["content"] for each in values["messages"]]


@pytest.fixture
def machines(maker: socket.socket, postgres: str, tmp_path: Path) -> Sequence[Machine]:
    options = ("--database", address(postgres))
    return [Machine(maker, tmp_path / name, *options) for name in "abc"]


def address(postgres: str) -> str:
    host = dict(part.split("=") for part in postgres.split())["host"]
    return f"postgresql://postgres@/postgres?host={host}"


def test_no_turn_is_lost_between_machines_whose_clocks_differ(machines: Sequence[Machine]) -> None:
    """Nor one of a run that one machine begins and the other ends."""
    for machine in machines:
        machine.set_clock(0)
    with ExitStack() as stack:
        ahead, right = (stack.enter_context(machine.serving()) for machine in machines[:2])
        threads = [right.threads.create()["thread_id"] for _ in range(_THREADS)]
        said: dict[str, list[str]] = {thread: [] for thread in threads}
        turns = itertools.count()
        for skew in _SKEWS:
            machines[0].set_clock(skew)
            for client, thread in itertools.product((ahead, right) * 4, threads):
                text = f"turn {next(turns)}"
                assert last(client.runs.wait(thread, "echo", input=say(text))) == f"Echo: {text}"
                said[thread] += [text, f"Echo: {text}"]
        assert {thread: texts(right, thread) for thread in threads} == said


@pytest.mark.slow
def test_a_run_keeps_its_steps_where_workers_with_earlier_clocks_go_on(
    machines: Sequence[Machine], postgres: str, tmp_path: Path
) -> None:
    """One that is 20 seconds ahead hands it over to a right one, and that to one that is 20 seconds late."""
    stones = ["light", "light", "heavy", "light", "light", "heaviest", "light", "light"]
    seen: list[Any] = []
    with (
        serving(tmp_path, address(postgres), slots=0) as url,
        get_sync_client(url=url, api_key=None) as client,
        ExitStack() as stack,
    ):
        thread = client.threads.create()["thread_id"]
        asked: Any = {"input": say(f"up: {' '.join(stones)}"), "stream_mode": ["custom", "updates"]}
        run = client.runs.create(thread, "lifter", **asked, stream_resumable=True)["run_id"]
        working = ExitStack()
        for machine, skew in zip(machines, (20, 0, -20), strict=True):
            machine.set_clock(skew)
            former, working = working, stack.enter_context(ExitStack())
            working.enter_context(machine.running("worker"))
            former.close()
            for part in client.runs.join_stream(thread, run, last_event_id=seen[-1].id if seen else "-1"):
                seen.append(part)
                if part.event == "custom":
                    break
        kept = texts(client, thread)

    lifted = [each for stone in stones for each in ("", f"lifted {stone}")]
    assert kept == [asked["input"]["messages"][0]["content"], *lifted, "Both are up."]
    updates = [part.data for part in seen if part.event == "updates"]
    results = [update["tools"]["messages"][0]["content"] for update in updates if "tools" in update]
    assert results == [f"lifted {stone}" for stone in stones]
    assert [part.data["attempt"] for part in seen if part.event == "metadata"] == [1, 2, 3]


@pytest.mark.parametrize("skew", [-3600, 3600])
def test_a_run_for_later_begins_when_the_database_says_so(
    machines: Sequence[Machine], postgres: str, tmp_path: Path, skew: int
) -> None:
    """Whether the worker is an hour late, or an hour ahead of it."""
    machines[0].set_clock(skew)
    with (
        serving(tmp_path, address(postgres), slots=0) as url,
        get_sync_client(url=url, api_key=None) as client,
        machines[0].running("worker"),
    ):
        thread = client.threads.create()["thread_id"]
        run = client.runs.create(thread, "echo", input=say("later"), after_seconds=2)["run_id"]
        client.runs.join(thread, run)
        shown: Any = client.runs.get(thread, run)

    created, ended = (datetime.fromisoformat(shown[f"{name}_at"]) for name in ("created", "updated"))
    assert timedelta(seconds=2) <= ended - created < timedelta(seconds=60)


def test_what_follows_a_clock_that_was_put_right_is_kept(maker: socket.socket, tmp_path: Path) -> None:
    """On one machine, after a restart. The run that waited begins as soon as there is room."""
    machine = Machine(maker, tmp_path, "--runs", "1")
    machine.set_clock(3600)
    with machine.serving() as client:
        thread, other = (client.threads.create()["thread_id"] for _ in range(2))
        client.runs.wait(thread, "echo", input=say("one"))
        working = client.runs.create(other, "echo", input=say("wait for ever"))
        waiting = client.runs.create(thread, "echo", input=say("two"))

    machine.set_clock(0)
    with machine.serving() as client:
        client.runs.cancel(other, working["run_id"], wait=True)
        client.runs.join(thread, waiting["run_id"])
        client.runs.wait(thread, "echo", input=say("three"))

        assert texts(client, thread) == ["one", "Echo: one", "two", "Echo: two", "three", "Echo: three"]
        assert [run["status"] for run in client.runs.list(thread)] == ["success"] * 3
