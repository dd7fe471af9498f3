"""A worker is killed again and again, at moments of chance: no text and no step is lost or doubled."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from deepagents_cli.protocol import Idle, Queued, Status
from tests.cli.openai_server import OpenAIServer, Reply, Request, call
from tests.cli.session.conftest import StartWorker, Worker

pytestmark = pytest.mark.slow

KILLS = 8
MOST_MESSAGES = 14
"""Of the worker before it is killed; a whole turn has more."""


def test_after_kills_at_any_moment_each_text_and_each_step_is_there_once(
    start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    server.then(*[work] * (KILLS * 12))

    hits = 0
    worker = start()
    worker.open(mode="full")
    for number in range(1, KILLS + 1):
        note = f"seed {seed}, kill {number}"
        worker.say(f"Turn {number}")
        worker.wait(Queued, texts=[f"Turn {number}"])
        for _ in range(chance.randrange(MOST_MESSAGES)):
            assert not isinstance(worker.take(), Idle), f"{note}: the turn was over"
        worker.kill()

        worker = start()
        ready = worker.open(resume=True, mode="full")
        worker.wait(Status)
        if ready.waiting or queue_of(worker):
            hits += 1
            assert worker.turn("").end == "done", note
        assert queue_of(worker) == [], note
    worker.turn("The end")

    assert hits > KILLS / 2, f"seed {seed}: only {hits} kills hit the middle of a turn"
    last = server.requests[-1]
    note = f"seed {seed}"
    assert last.texts("user") == [*(f"Turn {number}" for number in range(1, KILLS + 1)), "The end"], note
    assert unanswered(last) == [], note
    done = [text for text in last.texts("assistant") if text.startswith("Done")]
    assert done == [f"Done with {number}, all of it, as it was asked." for number in range(1, KILLS + 1)], (
        note
    )
    ran = (directory / "log").read_text().split()
    assert sorted(set(ran), key=int) == [str(number) for number in range(1, KILLS + 2)], note
    # A call in flight is repeated, at most once a kill.
    assert all(ran.count(each) <= 2 for each in ran), note
    assert {each.name for each in directory.glob("*.txt")} == {f"{n}.txt" for n in range(1, KILLS + 2)}, note


def work(request: Request) -> Reply:
    """Write a file, run a command, and answer, for each text of the person."""
    number = len(request.texts("user"))
    at = max(at for at, each in enumerate(request.messages) if each["role"] == "user")
    match sum(each["role"] == "tool" for each in request.messages[at:]):
        case 0:
            return call("write_file", file_path=f"{number}.txt", content=f"{number}\n")
        case 1:
            return call("execute", command=f"echo {number} >> log")
        case _:
            return Reply(f"Done with {number}, all of it, as it was asked.", every=0.02)


def queue_of(worker: Worker) -> Sequence[str]:
    queued = [each.texts for each in worker.all(Queued)]
    return queued[-1] if queued else []


def unanswered(request: Request) -> list[str]:
    """The calls without exactly one result, and results without a call."""
    calls = [made["id"] for each in request.messages for made in each.get("tool_calls") or ()]
    results = [each["tool_call_id"] for each in request.messages if each["role"] == "tool"]
    return sorted({*calls} ^ {*results}) + [each for each in results if results.count(each) > 1]
