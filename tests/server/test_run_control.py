"""What an operator does with the runs of all owners."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from deepagents_cli.__main__ import main
from tests.server.serving import Process, make_key
from tests.server.test_runs import say

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]
"""Calls `deepagents runs`; returns the code, and what was written."""


@dataclass(frozen=True)
class Place:
    """A server, and the database that it has."""

    directory: Path
    url: str
    database: str

    keys: dict[str, str]

    def client(self, owner: str) -> SyncLangGraphClient:
        """Return a client of an owner."""
        return get_sync_client(url=self.url, api_key=self.keys[owner])


@pytest.fixture(scope="module", params=["a file", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("operated")
    database = str(directory / "server.db")
    if request.param == "PostgreSQL":
        # Of its own, since it gets keys.
        address, name = request.getfixturevalue("postgres"), f"operated_{uuid4().hex}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        host = dict(part.split("=") for part in address.split())["host"]
        database = f"postgresql://postgres@/{name}?host={host}"
        assert main(["db", "migrate", "--database", database]) == 0
    keys = {owner: make_key(directory, owner, "--database", database) for owner in ("anna", "bert", "carl")}
    server = Process(directory, "--database", database, MENDED=str(directory / "mended"))
    yield Place(directory, server.start(), database, keys)
    server.close()


@pytest.fixture
def command(place: Place, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*typed: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["runs", *typed, "--database", place.database])
        written = capsys.readouterr()
        return code, written.out + written.err

    return call


def test_a_run_that_failed_goes_on_from_its_last_step(place: Place, command: Command) -> None:
    with place.client("anna") as anna:
        thread = anna.threads.create()["thread_id"]
        anna.runs.wait(thread, "poster", input=say("hello"), raise_error=False)
        failed = json.loads(command("list", "--status", "error", "--json")[1])
        (run,) = anna.runs.list(thread)

        assert (failed["run_id"], failed["owner"], failed["thread_id"]) == (run["run_id"], "anna", thread)
        assert failed["error"] == {"error": "ConnectionError", "message": "the post office is closed"}
        table = command("list", "--status", "error", "--owner", "anna")[1].splitlines()
        assert table[0].split()[:4] == ["run", "status", "age", "owner"]
        assert "ConnectionError: the post office is closed" in table[1]

        (place.directory / "mended").touch()
        assert command("retry", run["run_id"]) == (0, f"{run['run_id']} goes on as soon as there is room.\n")
        values: Any = anna.runs.join(thread, run["run_id"])

        assert values["steps"] == ["written", "sent"]
        assert [message["content"] for message in values["messages"]] == ["hello"]
        assert anna.runs.get(thread, run["run_id"])["status"] == "success"
        assert "ended well" in command("retry", run["run_id"])[1]
        shown = json.loads(command("show", run["run_id"], "--json")[1])
        assert (shown["attempt"], shown["error"], shown["kwargs"]["input"]) == (2, None, say("hello"))
        assert "graph_id    poster" in command("show", run["run_id"])[1].splitlines()


def test_of_a_thread_only_the_last_run_is_retried(place: Place, command: Command) -> None:
    with place.client("bert") as bert:
        thread = bert.threads.create()["thread_id"]
        bert.runs.wait(thread, "echo", input=say("fail now"), raise_error=False)
        bert.runs.wait(thread, "echo", input=say("hello"))
        failed = bert.runs.list(thread)[-1]["run_id"]

    code, said = command("retry", failed)

    assert code == 2
    assert "is not the last of its thread" in said


def test_runs_of_any_owner_are_ended(place: Place, command: Command) -> None:
    with place.client("carl") as carl:
        thread = carl.threads.create()["thread_id"]
        works = carl.runs.create(thread, "echo", input=say(f"wait {uuid4()}"), stream_resumable=True)
        next(iter(carl.runs.join_stream(thread, works["run_id"], last_event_id="-1")))
        waits = carl.runs.create(thread, "echo", input=say("hello"))

        listed = [json.loads(each) for each in command("list", "--thread", thread, "--json")[1].splitlines()]
        names = [each["run_id"] for each in listed]
        ended = command("cancel", *names)
        carl.runs.join(thread, works["run_id"])

        assert names == [waits["run_id"], works["run_id"]]
        assert [each["status"] for each in listed] == ["pending", "running"]
        assert [bool(each["worker"]) for each in listed] == [False, True]
        assert ended == (0, "".join(f"{name} ends.\n" for name in names))
        assert {each["status"] for each in carl.runs.list(thread)} == {"interrupted"}
        assert command("list", "--thread", thread) == (0, "")
        assert command("cancel", names[0])[1] == f"{names[0]} was over already: interrupted.\n"


def test_what_is_not_there_is_one_sentence(place: Place, command: Command, tmp_path: Path) -> None:
    for typed in (["show", "no-run"], ["cancel", "no-run"], ["retry", "no-run"]):
        code, said = command(*typed)
        assert (code, said.count("\n")) == (2, 1)
        assert "There is no run 'no-run'" in said
    assert main(["runs", "list", "--database", str(tmp_path / "gone.db")]) == 2
    assert not (tmp_path / "gone.db").exists()
