"""Machines whose clocks differ, and are set: what is newest never follows from them."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.server.serving import GRAPHS
from tests.server.test_runs import last, say

_SKEWS = (2, 20, 3600, -2, -20, -3600, 0)


class Machine:
    """A server on a machine with a clock of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        directory.mkdir(exist_ok=True)
        (directory / "langgraph.json").write_text(json.dumps({"graphs": GRAPHS}))
        self._clock = directory / "clock"
        self._place, self._options = directory, options
        self.pid = 0

    def set_clock(self, seconds: int) -> None:
        """Let its clock be wrong by so much."""
        part = self._clock.with_suffix(".part")
        part.write_text(str(seconds))
        part.rename(self._clock)

    @contextmanager
    def serving(self) -> Generator[SyncLangGraphClient]:
        """Serve until the block ends, and yield a client."""
        program = Path(__file__).with_name("skewed.py")
        command = [sys.executable, str(program), str(self._clock), "serve", "--port", "0", *self._options]
        environ = {**os.environ, "PYTHONPATH": str(program.parents[2]), "LIFTED": str(self._place / "lifted")}
        process = subprocess.Popen(command, cwd=self._place, env=environ, stdout=subprocess.PIPE, text=True)
        self.pid = process.pid
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("Serving "), said
            with get_sync_client(url=said.split()[-1], api_key=None) as client:
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def texts(client: SyncLangGraphClient, thread: str) -> list[str]:
    values: Any = client.threads.get_state(thread)["values"]
    return [each["content"] for each in values["messages"]]


@pytest.fixture
def machines(postgres: str, tmp_path: Path) -> tuple[Machine, Machine]:
    host = dict(part.split("=") for part in postgres.split())["host"]
    options = ("--database", f"postgresql://postgres@/postgres?host={host}")
    return Machine(tmp_path / "a", *options), Machine(tmp_path / "b", *options)


def test_no_turn_is_lost_between_machines_whose_clocks_differ(machines: tuple[Machine, Machine]) -> None:
    """Nor one of a run that one machine begins and the other ends."""
    for machine in machines:
        machine.set_clock(0)
    with ExitStack() as stack:
        ahead, right = (stack.enter_context(machine.serving()) for machine in machines)
        threads = [right.threads.create()["thread_id"] for _ in range(4)]
        said: dict[str, list[str]] = {thread: [] for thread in threads}
        turns = itertools.count()
        for skew in _SKEWS:
            machines[0].set_clock(skew)
            for client, thread in itertools.product((ahead, right) * 4, threads):
                text = f"turn {next(turns)}"
                assert last(client.runs.wait(thread, "echo", input=say(text))) == f"Echo: {text}"
                said[thread] += [text, f"Echo: {text}"]
        assert next(turns) > 200
        assert {thread: texts(right, thread) for thread in threads} == said


def test_what_follows_a_clock_that_was_put_right_is_kept(tmp_path: Path) -> None:
    """On one machine, after a restart. The run that waited begins as soon as there is room."""
    machine = Machine(tmp_path, "--runs", "1")
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
