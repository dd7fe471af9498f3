from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph_sdk import get_sync_client

from tests.server.serving import Process
from tests.server.test_runs import last, say

pytestmark = pytest.mark.slow


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path, LIFTED=str(tmp_path / "lifted"))
    yield process
    process.close()


@pytest.fixture
def newer(tmp_path: Path) -> Iterator[Process]:
    """The same server with a new version of the code."""
    process = Process(tmp_path, "--code-version", "2", LIFTED=str(tmp_path / "lifted"))
    yield process
    process.close()


@pytest.mark.parametrize(("how", "changes"), [(signal.SIGKILL, False), (signal.SIGTERM, True)])
def test_a_run_goes_on_where_the_server_ended(
    process: Process, newer: Process, tmp_path: Path, how: signal.Signals, *, changes: bool
) -> None:
    """The tool at work starts again, and can know it; a command does not, and the agent is told.

    Nothing is done twice, and no event is missed.
    """
    seen: list[Any] = []
    begun = tmp_path / "begun"
    with get_sync_client(url=process.start(), api_key=None) as client:
        thread = client.threads.create()["thread_id"]
        run = client.runs.create(
            thread, "lifter", input=say("up"), stream_mode=["updates", "custom"], stream_resumable=True
        )["run_id"]
        queued = client.runs.create(thread, "echo", input=say("next"))["run_id"]
        commanded = client.threads.create()["thread_id"]
        command = client.runs.create(commanded, "obedient", input=say(f"execute echo >> {begun}; sleep 60"))
        for part in client.runs.join_stream(thread, run, last_event_id="-1"):
            seen.append(part)
            if part.event == "custom":
                break
        while not begun.exists():
            time.sleep(0.05)
        assert process.end(how) == (0 if how == signal.SIGTERM else -how), "a server may be told to end"

    with get_sync_client(url=(newer if changes else process).start(), api_key=None) as client:
        seen += client.runs.join_stream(thread, run, last_event_id=seen[-1].id)
        values: Any = client.runs.join(thread, queued)

        told = last(client.runs.join(commanded, command["run_id"]))
        assert client.runs.get(thread, run)["status"] == "success"
        assert last(values) == "Echo: next"
    assert "before a crash cut off the run; it may have run" in told
    assert begun.read_text() == "\n", "the command was not started again"
    lifted = [line.split() for line in (tmp_path / "lifted").read_text().splitlines()]
    assert [line[:2] for line in lifted] == [["1", "light"], ["1", "heavy"], ["2", "heavy"]]
    assert lifted[1][2] == lifted[2][2], "the key of run and call"
    contents = [each["content"] for each in values["messages"]]
    assert [each for each in contents if each] == [
        "up",
        "lifted light",
        "lifted heavy",
        "Both are up.",
        "next",
        "Echo: next",
    ]
    assert [part.data["attempt"] for part in seen if part.event == "metadata"] == [1, 2]
    numbers = [int(part.id) for part in seen]
    assert numbers == sorted({*numbers})
    tools = [part.data["tools"] for part in seen if part.event == "updates" and "tools" in part.data]
    assert [each["messages"][0]["content"] for each in tools] == ["lifted light", "lifted heavy"]


def test_after_a_crash_those_go_on_that_were_at_work(tmp_path: Path) -> None:
    """They have the room that they had, and what waited goes on waiting."""
    process = Process(tmp_path, "--runs", "2")
    with get_sync_client(url=process.start(), api_key=None) as client:

        def begin(name: str) -> str:
            thread = client.threads.create()["thread_id"]
            return client.runs.create(thread, "echo", input=say(f"wait {name}"))["run_id"]

        working = [begin("one"), begin("two")]
        begin("three")
        begin("four")
    process.end(signal.SIGKILL)

    process.start()
    with closing(sqlite3.connect(tmp_path / ".deepagents" / "server.db")) as database:
        query = "SELECT run_id, attempt FROM runs WHERE attempt > 0"
        attempts: dict[str, int] = {}
        while sum(attempts.values()) < 4:
            time.sleep(0.05)
            attempts = dict(database.execute(query).fetchall())
    process.close()

    assert attempts == dict.fromkeys(working, 2)


def test_a_node_that_swallows_that_it_is_cancelled_is_cancelled_again(process: Process) -> None:
    """A server that ends gives up on runs after ten seconds, and this one needs half of them."""
    with get_sync_client(url=process.start(), api_key=None) as client:
        asked: Any = {"stream_mode": "custom", "stream_resumable": True}
        thread = client.threads.create()["thread_id"]
        run = client.runs.create(thread, "echo", input=say("linger here"), **asked)["run_id"]
        for part in client.runs.join_stream(thread, run, last_event_id="-1"):
            if part.event == "custom":
                break
        began = time.monotonic()

        assert process.end(signal.SIGTERM) == 0

    assert time.monotonic() - began < 10


def test_a_run_from_an_earlier_state_goes_on_from_its_own_steps(process: Process, tmp_path: Path) -> None:
    """After a crash it does not begin once more at the state from which it was to begin."""
    with get_sync_client(url=process.start(), api_key=None) as client:
        thread = client.threads.create()["thread_id"]
        client.runs.wait(thread, "echo", input=say("first"))
        earlier: Any = client.threads.get_state(thread)["checkpoint"]
        client.runs.wait(thread, "echo", input=say("second"))
        run = client.runs.create(
            thread, "lifter", input=say("up"), checkpoint=earlier, stream_mode="custom", stream_resumable=True
        )["run_id"]
        for part in client.runs.join_stream(thread, run, last_event_id="-1"):
            if part.event == "custom":
                break
        process.end(signal.SIGKILL)

    with get_sync_client(url=process.start(), api_key=None) as client:
        values: Any = client.runs.join(thread, run)

    lifted = [line.split()[:2] for line in (tmp_path / "lifted").read_text().splitlines()]
    assert lifted == [["1", "light"], ["1", "heavy"], ["2", "heavy"]]
    contents = [each["content"] for each in values["messages"] if each["content"]]
    assert contents == ["first", "Echo: first", "up", "lifted light", "lifted heavy", "Both are up."]


def test_events_of_steps_that_were_saved_are_not_missed(process: Process) -> None:
    """The server is killed when a step is saved and its events are not sent, and so after the last one."""
    seen: list[Any] = []
    with get_sync_client(url=process.start(), api_key=None) as client:
        thread = client.threads.create()["thread_id"]
        run = client.runs.create(
            thread, "mine", input=say("go"), stream_mode=["updates", "values"], stream_resumable=True
        )["run_id"]
        process.wait()
    with get_sync_client(url=process.start(), api_key=None) as client:
        process.wait()
    with get_sync_client(url=process.start(), api_key=None) as client:
        seen += client.runs.join_stream(thread, run, last_event_id="-1")

    updates = [part.data for part in seen if part.event == "updates"]
    assert [[*update] for update in updates] == [["dig"], ["fill"]]
    values = [part.data for part in seen if part.event == "values"]
    assert last(values[-1]) == "filled"


def test_a_crash_keeps_what_was_asked_of_a_run_and_how_far_it_came(process: Process, tmp_path: Path) -> None:
    """One was steered before the crash; of two that crashed often, the one that went on meanwhile goes on."""
    runs: dict[str, tuple[str, str]] = {}
    with get_sync_client(url=process.start(), api_key=None) as client:
        for name in ("steered", "stuck", "slow"):
            thread = client.threads.create()["thread_id"]
            run = client.runs.create(
                thread, "lifter", input=say("up"), stream_mode="custom", stream_resumable=True
            )
            runs[name] = thread, run["run_id"]
            for part in client.runs.join_stream(*runs[name], last_event_id="-1"):
                if part.event == "custom":
                    break
        steering = client.runs.create(
            runs["steered"][0], "lifter", input=say("hurry"), multitask_strategy=cast(Any, "steer")
        )
    process.end(signal.SIGKILL)
    with closing(sqlite3.connect(tmp_path / ".deepagents" / "server.db")) as database:
        # Each attempt gives both the next number; a checkpoint has the lease's.
        database.execute("UPDATE runs SET attempt = 22")
        database.execute("UPDATE leases SET token = 22 WHERE run_id = ?", (runs["stuck"][1],))
        database.commit()

    with get_sync_client(url=process.start(), api_key=None) as client:
        values: Any = client.runs.join(runs["steered"][0], steering["run_id"])
        for run in runs.values():
            client.runs.join(*run)
        ended: dict[str, Any] = {name: client.runs.get(*run) for name, run in runs.items()}

    contents = [each["content"] for each in values["messages"] if each["content"]]
    assert contents == ["up", "lifted light", "lifted heavy", "hurry", "Both are up."]
    assert {name: run["status"] for name, run in ended.items()} == {
        "steered": "interrupted",
        "stuck": "error",
        "slow": "success",
    }
    assert "finished no step" in ended["stuck"]["error"]["message"]


def test_the_end_of_a_run_is_written_when_the_disk_has_room_again(process: Process, tmp_path: Path) -> None:
    with get_sync_client(url=process.start(), api_key=None) as client:
        thread = client.threads.create()["thread_id"]
        with closing(sqlite3.connect(tmp_path / ".deepagents" / "server.db")) as database:
            database.execute(
                "CREATE TRIGGER full BEFORE UPDATE OF status ON runs WHEN NEW.status = 'success' "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
            run = client.runs.create(thread, "echo", input=say("hello"))["run_id"]
            while not database.execute("SELECT 1 FROM runs WHERE attempt = 2").fetchall():
                time.sleep(0.05)
            database.execute("DROP TRIGGER full")

        assert last(client.runs.join(thread, run)) == "Echo: hello"
        assert client.runs.get(thread, run)["status"] == "success"


def test_a_question_is_asked_once_though_the_end_of_its_run_cannot_be_written(
    process: Process, tmp_path: Path
) -> None:
    with get_sync_client(url=process.start(), api_key=None) as client:
        thread = client.threads.create()["thread_id"]
        with closing(sqlite3.connect(tmp_path / ".deepagents" / "server.db")) as database:
            database.execute(
                "CREATE TRIGGER full BEFORE UPDATE OF status ON runs "
                "WHEN NEW.status = 'success' AND NEW.attempt < 2 "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        run = client.runs.create(
            thread, "echo", input=say("ask Why?"), stream_mode="updates", stream_resumable=True
        )["run_id"]
        seen = [*client.runs.join_stream(thread, run, last_event_id="-1")]
        asking: Any = client.threads.get(thread)

        assert [part.data["attempt"] for part in seen if part.event == "metadata"] == [1, 2]
        updates = [part.data for part in seen if part.event == "updates"]
        assert [update["__interrupt__"][0]["value"] for update in updates] == ["Why?"]
        assert asking["status"] == "interrupted"
        answered: Any = client.runs.wait(thread, "echo", command={"resume": "so"})
        assert last(answered) == "You said so."


def test_a_run_ends_with_an_error_where_no_database_takes_what_it_leaves(
    process: Process, tmp_path: Path
) -> None:
    """More than a gigabyte of text, which the trigger says of less."""
    with get_sync_client(url=process.start(), api_key=None) as client:
        thread = client.threads.create()["thread_id"]
        with closing(sqlite3.connect(tmp_path / ".deepagents" / "server.db")) as database:
            database.execute(
                """CREATE TRIGGER large BEFORE UPDATE OF "values" ON threads
                WHEN NEW."values" LIKE '%Echo: much%' BEGIN SELECT zeroblob(2000000000); END"""
            )
        run = client.runs.create(thread, "echo", input=say("much"))["run_id"]
        client.runs.join(thread, run)
        ended: Any = client.runs.get(thread, run)

        assert ended["status"] == "error"
        assert ended["error"] == {"error": "DataError", "message": "string or blob too big"}
        assert last(client.runs.wait(None, "echo", input=say("little"))) == "Echo: little"
