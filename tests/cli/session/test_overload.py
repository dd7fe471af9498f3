"""A provider that is overloaded is waited for, and a person sees for how long."""

from __future__ import annotations

from deepagents.events import ModelRetry
from deepagents_cli.protocol import Happened, Idle, Stop
from tests.cli.openai_server import OpenAIServer, Reply, call
from tests.cli.session.conftest import Worker


def overloaded(seconds: int) -> Reply:
    return Reply("Overloaded.", status=529, headers={"retry-after": str(seconds)})


def test_a_turn_outlasts_an_overload(worker: Worker, server: OpenAIServer) -> None:
    server.then(call("ls", path="/"), *[overloaded(0)] * 6, "Here I am.")
    worker.open()
    worker.say("Hello.")

    assert worker.answer() == "Here I am."
    lines = [each.line for each in worker.all(Happened) if isinstance(each.event, ModelRetry)]
    assert lines == [f"the model is overloaded; trying again in 0 s ({n} of 8)" for n in range(1, 7)]
    assert len(server.requests) == 8


def test_esc_ends_a_wait_at_once(worker: Worker, server: OpenAIServer) -> None:
    server.then(overloaded(250), "Here I am.")
    worker.open()
    worker.say("Hello.")

    assert worker.event(ModelRetry).seconds == 250
    worker.send(Stop())

    assert worker.wait(Idle).end == "stopped"
    assert worker.turn("And now?").end == "done"
    assert len(server.requests) == 2


def test_a_wait_that_is_too_long_is_left_to_the_person(worker: Worker, server: OpenAIServer) -> None:
    server.then(overloaded(3600))
    worker.open()
    worker.say("Hello.")

    message = worker.wait_for_end_of_turn()
    assert message.end == "failed"
    assert len(server.requests) == 1
