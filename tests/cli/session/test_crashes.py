"""A worker is killed or stopped at any moment: nothing that was done is lost, and nothing is done twice."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from deepagents.events import ApprovalGiven, Token, ToolCalled, ToolFinished
from deepagents_cli.protocol import Answer, Ask, Close, Idle, Notice, Question, Queued, Status, Stop
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import OpenAIServer, Reply, call
from tests.cli.session.conftest import StartWorker, Worker
from tests.waiting import until

pytestmark = pytest.mark.slow


def test_a_killed_worker_goes_on_with_each_text_once(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    server.then(
        call("edit_file", file_path="notes.md", old_string="first", new_string="1st"),
        Reply("Half of", hold=Event()),
    )
    worker.open(mode="auto")
    worker.say("Number the lines.")
    worker.event(ToolFinished)
    worker.event(Token)
    worker.say("Be quick.")
    worker.wait(Queued, texts=["Be quick."])
    worker.kill()

    server.then("Numbered.")
    again = start()
    ready = again.open(resume=True, mode="auto")
    assert (ready.resumed, ready.waiting) == (True, True)
    assert [each.text for each in ready.history][0] == "Number the lines."
    assert again.wait(Queued).texts == ["Be quick."]
    again.say("")
    assert again.answer() == "Numbered."
    assert server.requests[-1].texts("user") == ["Number the lines.", "Be quick."]
    assert (directory / "notes.md").read_text() == "1st line\nsecond line\n"
    again.kill()

    third = start()
    ready = third.open(resume=True)
    assert not ready.waiting
    assert [each.text for each in ready.history if each.who == "person"] == [
        "Number the lines.",
        "Be quick.",
    ]


def test_a_question_that_was_open_is_asked_again(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    server.then(call("write_file", file_path="new.md", content="hello\n"))
    worker.open()
    worker.say("Write.")
    asked = worker.wait(Ask)
    worker.kill()

    server.then("Written.")
    again = start()
    assert not again.open(resume=True).waiting
    once_more = again.wait(Ask)
    assert (once_more.title, once_more.details) == (asked.title, asked.details)
    assert len(server.requests) == 1, "the model was asked again"
    again.decide(once_more, "approve")
    assert again.answer() == "Written."
    assert (directory / "new.md").read_text() == "hello\n"


@needs_sandbox
def test_an_agent_that_asks_still_asks_after_a_crash(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    agents = directory / ".deepagents/agents"
    agents.mkdir(parents=True)
    (agents / "asks.md").write_text("---\ndescription: Asks.\nmode: ask\n---\nWork.")
    server.then(
        call("task", description="Write.", subagent_type="asks"),
        call("write_file", file_path="new.md", content="hello\n"),
    )
    worker.open(mode="auto")
    worker.say("Delegate.")
    worker.wait(Ask)
    worker.kill()

    server.then("It was refused.", "Not done.")
    again = start()
    again.open(resume=True, mode="auto")
    again.say("")
    asked = again.wait(Ask)
    again.decide(asked, "reject")
    assert again.answer() == "Not done."
    assert not (directory / "new.md").exists()


def test_esc_ends_a_command_and_all_that_it_started(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    server.then(call("execute", command="(sleep 600; touch late) & echo $$ > started; sleep 600"))
    worker.open(mode="full")
    worker.say("Wait.")
    worker.event(ToolCalled)
    while not (directory / "started").exists():
        assert worker.process.is_alive()

    worker.send(Stop())
    idle = worker.wait(Idle)
    assert idle.end == "stopped"
    server.then("Then not.")
    assert worker.turn("Never mind.").end == "done"
    assert "cancelled while it ran" in server.requests[-1].texts("tool")[0]
    assert server.requests[-1].texts("user") == ["Wait.", "Never mind."]


@needs_sandbox
def test_a_command_of_another_process_is_not_taken_for_ones_own(
    worker: Worker, start: StartWorker, server: OpenAIServer
) -> None:
    server.then(call("execute", command="sleep 600", background=True), "It runs.")
    first = worker.open(mode="auto").thread
    worker.turn("Serve.")
    worker.kill()

    server.then(call("execute", command="sleep 600", background=True), "It runs.", "It is gone.")
    again = start()
    again.open(mode="auto")
    again.turn("Serve in a session of your own.")
    again.command("resume", first)
    again.turn("Does it run?")

    assert any("cannot be reached any more" in each for each in server.requests[-1].texts("user"))


@needs_sandbox
def test_a_command_that_ended_with_its_screen_begins_again(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    server.then(call("execute", command="echo x >> begun; until test -e go; do sleep 0.05; done"), "Built.")
    worker.open(mode="auto")
    worker.say("Build.")
    until((directory / "begun").exists)
    worker.send(Close())
    worker.wait_for_end()
    (directory / "go").touch()

    again = start()
    assert again.open(resume=True, mode="auto").waiting
    again.say("")
    assert again.event(ToolFinished).status == "success"
    assert again.answer() == "Built."
    assert (directory / "begun").read_text() == "x\nx\n"


def test_a_screen_that_is_gone_ends_the_worker_and_the_thread_goes_on(
    worker: Worker, start: StartWorker, server: OpenAIServer
) -> None:
    server.then(Reply("Half of an answer", hold=Event()))
    worker.open()
    worker.say("Answer me.")
    worker.event(Token)

    assert worker.end() == 0

    server.then("The whole answer.")
    again = start()
    again.open(resume=True)
    assert again.turn("Go on, please.").end == "done"
    assert server.requests[-1].texts("user") == ["Answer me.", "Go on, please."]


def test_a_model_that_fails_ends_the_turn_with_a_sentence(worker: Worker, server: OpenAIServer) -> None:
    server.then(Reply("The key is not valid.", status=401), "Now it works.")
    worker.open()
    worker.say("Hello.")

    message = worker.wait_for_end_of_turn()
    assert message.end == "failed"
    assert "The key is not valid." in str(message.error)
    assert worker.turn("Again.").end == "done"


def test_a_plan_is_approved_and_carried_out_in_the_same_turn(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    server.then(
        call("write_file", file_path="new.md", content="too early\n"),
        call("present_plan", plan="Write new.md."),
        call("present_plan", plan="Write new.md, in English."),
        call("present_plan", plan="Write new.md, in plain English."),
        call("write_file", file_path="new.md", content="hello\n"),
        "Written.",
    )
    worker.open(mode="plan")
    worker.say("Make a file.")
    assert worker.event(ApprovalGiven).decision == "reject"
    asked = worker.wait(Question)
    assert asked.text == "Write new.md."
    assert [each.value for each in asked.choices] == ["ask", "auto", "plan"]
    assert "Plan mode" in server.requests[0].system
    worker.send(Answer(ask=asked.id, text="In English, please."))
    again = worker.wait(Question, text="Write new.md, in English.")
    worker.send(Answer(ask=again.id, text="plan"))
    at_last = worker.wait(Question, text="Write new.md, in plain English.")
    assert "wants to go on planning" in server.requests[-1].last
    worker.send(Answer(ask=at_last.id, text="auto"))

    assert worker.answer() == "Written."
    assert worker.last(Status).mode == "auto"
    assert (directory / "new.md").read_text() == "hello\n"
    assert "Plan mode" not in server.requests[-1].system
    assert "present_plan" not in server.requests[-1].tools


def test_files_and_pictures_are_put_into_the_message(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    (directory / "dot.png").write_bytes(b"\x89PNG")
    (tmp_path / "other.txt").write_text("secret")
    (directory / ".env").write_text("KEY=1")
    server.then("I see.")
    worker.open()

    # What the text itself names may come from a file of somebody else that was pasted or put in.
    worker.say("Compare, please. @../other.txt @.env", "notes.md", "dot.png")
    worker.wait(Idle)
    content = server.requests[-1].messages[-1]["content"]
    assert len(content) == 3
    assert content[0]["text"] == "Compare, please. @../other.txt @.env"
    assert "first line" in content[1]["text"]
    assert content[2]["image_url"]["url"].startswith("data:image/png;base64,")
    server.then("I do not see it.")
    worker.say("And this?", "../other.txt", "a" * 300)
    for why in ("lies outside", "too long"):
        assert why in worker.wait(Notice).text
    worker.wait(Idle)
    asked, *why = [block["text"] for block in server.requests[-1].messages[-1]["content"]]
    assert asked == "And this?"
    assert "[Not attached: '../other.txt' lies outside" in why[0]
    assert "[Not attached: " in why[1]
