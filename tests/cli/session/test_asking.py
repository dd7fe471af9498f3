"""What a conversation asks about follows from the one policy: its mode, kept rules, and what is guarded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deepagents.events import ApprovalGiven
from deepagents_cli.protocol import Answer, Ask, Decide, Happened, Idle, Notice, Preview, Question, Status
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import OpenAIServer, Reply, Request, call
from tests.cli.session.conftest import Worker

pytestmark = pytest.mark.slow


def test_always_covers_what_was_chosen_and_an_edit_that_cannot_be_made_is_corrected_unasked(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    server.then(
        call("write_file", file_path="one.md", content="1\n"),
        call("write_file", file_path="two.md", content="2\n"),
        call("delete", file_path="absent.md"),
        call("write_file", file_path=".env", content="x"),
        "Done.",
    )
    worker.open()
    worker.say("Write.")
    asked = worker.wait(Ask)
    below = f"edits: {directory}"
    assert asked.rules[below] == "changes of all files in the directory"

    worker.decide(asked, "approve", rule=below, scope="directory")
    second = worker.wait(Ask)
    worker.decide(second, "reject", message="no")

    assert worker.answer() == "Done."
    assert (directory / "two.md").exists()
    given = [each.event for each in worker.all(Happened) if isinstance(each.event, ApprovalGiven)]
    refused = next(each for each in given if each.name == "delete")
    assert "not found" in str(refused.message)
    keep, listed = worker.command("permissions").choices
    assert worker.command("permissions", keep.value).text == "All stay allowed."
    assert (listed.value, listed.detail) == (below, "in this directory; remove")
    settings = tmp_path / "settings.toml"
    assert below in settings.read_text()
    assert worker.command("permissions", below).text == "It is asked about again."
    assert below not in settings.read_text()
    assert "No call" in worker.command("permissions").text
    assert second.title == "wants to write .env (looks like it holds secrets)"
    server.then(call("write_file", file_path="three.md", content="3\n"))
    worker.say("Write three.")
    assert worker.wait(Ask).title == "wants to write three.md"


def test_an_edit_of_arguments_that_are_no_json_is_said_to_be_none(
    worker: Worker, server: OpenAIServer
) -> None:
    server.then(call("delete", file_path="notes.md"), "Left.")
    worker.open()
    worker.say("Delete it.")
    asked = worker.wait(Ask)
    worker.send(Preview(ask=asked.id, text='{"file_path": '))

    said = worker.wait(Notice).text
    assert said == "Not taken: the arguments are not JSON: Expecting value in line 1, column 15"
    worker.decide(asked, "reject")
    assert worker.answer() == "Left."


def test_what_a_command_approves_holds_for_its_turn_alone(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    command = tmp_path / "home/.claude/commands/go.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\nallowed-tools: Write\n---\nGo.")
    server.then(call("write_file", file_path="one.md", content="1\n"), "Gone.")
    worker.open()
    worker.turn(worker.command("go").send)
    assert (directory / "one.md").exists()

    server.then(call("write_file", file_path="two.md", content="2\n"))
    worker.say("Once more.")
    assert worker.wait(Ask).title == "wants to write two.md"


def test_a_plan_that_is_carried_out_asking_asks(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    write = call("write_file", file_path="new.md", content="hello\n")
    server.then(call("present_plan", plan="Write new.md."), write, "Written.")
    worker.open(mode="plan")
    worker.say("Make a file.")
    asked = worker.wait(Question)
    assert asked.choices[0].label == "Carry it out, asking"
    worker.send(Answer(ask=asked.id, text=asked.choices[0].value))
    change = worker.wait(Ask)
    assert (change.title, worker.last(Status).mode) == ("wants to write new.md", "ask")
    worker.decide(change, "approve")

    assert worker.answer() == "Written."
    assert (directory / "new.md").read_text() == "hello\n"


@needs_sandbox
def test_a_person_is_asked_about_files_that_programs_outside_obey(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    (directory / ".git/hooks").mkdir(parents=True)
    titles = {
        ".git/hooks/pre-commit": "(changes what git keeps in .git)",
        ".vscode/tasks.json": "(other programs obey it)",
    }
    writes = [call("write_file", file_path=each, content="make\n") for each in titles]
    server.then(*writes, call("execute", command="chmod +x .git/hooks/pre-commit"), "Written.")
    worker.open(mode="auto")
    worker.say("Add a hook and a task.")
    for path, why in titles.items():
        asked = worker.wait(Ask)
        assert (asked.title, asked.details[-1]) == (f"wants to write {path} {why}", "+make")
        worker.decide(asked, "approve")
    asked = worker.wait(Ask)
    assert asked.title.endswith("may change hooks or settings that other programs obey")
    worker.decide(asked, "approve")

    assert worker.answer() == "Written."
    assert (directory / ".git/hooks/pre-commit").stat().st_mode & 0o100
    assert [(directory / each).read_text() for each in titles] == ["make\n", "make\n"]


FETCH = "curl -s -o /dev/null -w '%{http_code}' http://"


@needs_sandbox
def test_a_host_that_was_not_named_is_asked_about_once_the_command_has_ended(
    worker: Worker, server: OpenAIServer, tmp_path: Path
) -> None:
    def fetch(*names: str) -> Reply:
        return call("execute", command=f"{'; '.join(f'{FETCH}{name}.example/' for name in names)}; exit 0")

    server.then(fetch("ham", "spam"), fetch("spam"), call("execute", command=f"{FETCH}inner/"), "Done.")
    worker.open(mode="auto")
    worker.say("Fetch.")
    ham = worker.wait(Ask)
    assert (ham.title, ham.choices) == (
        "wants its commands to reach ham.example",
        ["approve", "reject"],
    )
    worker.decide(ham, "approve", rule=next(iter(ham.rules)), scope="everywhere")
    spam = worker.wait(Ask)
    worker.decide(spam, "reject")

    assert worker.answer() == "Done."
    first, second, inner = server.requests[-1].texts("tool")
    assert "lets commands reach ham.example from now on; run it again" in first
    assert "403" in second, "it is asked about once"
    assert "403" in inner, "a name of this machine's own network is not asked about"
    assert 'rule = "host: ham.example"' in (tmp_path / "settings.toml").read_text()
    assert worker.command("permissions").choices[1].detail == "everywhere; remove"
    worker.command("mode", "plan")
    server.then(fetch("ham", "eggs"), "Planned.")
    worker.say("Fetch again.")
    assert worker.answer() == "Planned."
    assert server.requests[-1].last.startswith("403403"), "nothing is reached in plan mode"


def test_a_page_of_another_host_is_asked_about_and_remembered_by_its_host(
    worker: Worker, server: OpenAIServer, tmp_path: Path
) -> None:
    pages = [
        "https://ham.invalid/a?b=c",
        "https://ham.invalid/second",
        "http://127.0.0.1/",
        "https://spam.invalid/",
    ]
    server.then(*[call("web_fetch", url=each) for each in pages], "Done.")
    worker.open(mode="auto")
    worker.say("Fetch.")
    ham = worker.wait(Ask)
    assert (ham.title, ham.details) == ("wants to fetch a page of ham.invalid", [pages[0]])
    assert ham.rules == {"fetch: ham.invalid": "pages of ham.invalid"}
    worker.decide(ham, "approve", rule="fetch: ham.invalid", scope="everywhere")
    spam = worker.wait(Ask)
    assert spam.title == "wants to fetch a page of spam.invalid"
    worker.decide(spam, "reject", message="Not that one.")

    assert worker.answer() == "Done."
    first, second, inner, rejected = server.requests[-1].texts("tool")
    assert "could not be fetched" in first
    assert "could not be fetched" in second, "it was not asked about"
    assert "addresses are allowed only where they are named" in inner, "nor was this, which is never reached"
    assert "Not that one." in rejected
    assert 'rule = "fetch: ham.invalid"' in (tmp_path / "settings.toml").read_text()


@needs_sandbox
def test_a_crowd_of_hosts_is_asked_about_in_part(worker: Worker, server: OpenAIServer) -> None:
    crowd = f"for n in $(seq 30); do {FETCH}h$n.example/; done"
    server.then(call("execute", command=crowd), "Done.")
    worker.open(mode="auto")
    worker.say("Fetch.")
    for _ in range(8):
        asked = worker.wait(Ask)
        worker.decide(asked, "reject")

    assert worker.answer() == "Done."


def test_subagents_that_wait_at_once_are_asked_about_one_after_the_other(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    def each_in_its_file(request: Request) -> Reply:
        if "Write " not in request.texts("user")[0]:
            return Reply("Both are done.") if request.texts("tool") else delegating
        name = request.texts("user")[0].removeprefix("Write ")
        return Reply("Done.") if request.texts("tool") else call("write_file", file_path=name, content="x\n")

    names = ["one.md", "two.md", "three.md"]
    tasks = [("task", {"description": f"Write {each}", "subagent_type": "general-purpose"}) for each in names]
    delegating = Reply(calls=tasks)
    answers: list[Callable[[Request], Reply]] = [each_in_its_file] * 8
    server.then(*answers)
    worker.open()
    worker.say("Let three others make files.")

    asked = [worker.wait(Ask)]
    for decision in ("approve", "reject", "approve"):
        worker.send(Decide(ask=asked[-1].id, decision=decision))
        if len(asked) < len(names):
            asked.append(worker.wait(Ask))

    assert worker.answer() == "Both are done."
    assert sorted(each.title for each in asked) == sorted(f"wants to write {each}" for each in names)
    assert len({each.agent for each in asked}) == len(names)
    written = {each.title.rpartition(" ")[2] for each in (asked[0], asked[2])}
    assert {each.name for each in directory.iterdir()} == {"notes.md", *written}


def test_a_file_that_looks_like_a_secret_is_attached_once_the_person_agrees(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    (directory / ".env").write_text("KEY=canary")
    (directory / "link").symlink_to(".env")
    server.then(call("write_file", file_path="a.md", content="x"), "Read.", "Again.", "Once more.")
    worker.open()
    for name, agreed in ((".env", "reject"), ("link", "approve")):
        worker.say(f"see @{name}", name, "notes.md")
        asked = worker.wait(Ask)
        assert asked.title == f"is to get {name}, which looks like it holds secrets"
        worker.decide(asked, agreed)
        if agreed == "reject":
            # What waits of a call is asked about after that, and not lost.
            call_asked = worker.wait(Ask)
            worker.say("see @.env too", ".env")
            worker.decide(call_asked, "reject")
            also = worker.wait(Ask)
            assert "is to get .env" in also.title
            assert server.requests[-1].last.count("canary") == 0
            worker.decide(also, "reject")
            worker.wait(Idle)
    # What was said while a call waited joins that turn, or is one of its own where that was over.
    while not any("canary" in each.last for each in server.requests):
        worker.wait(Idle)
    sent = [each.last for each in server.requests]
    assert "second line" in sent[0]
    assert ["canary" in each for each in sent] == [*[False] * (len(sent) - 1), True]
