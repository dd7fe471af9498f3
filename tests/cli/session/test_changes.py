"""What file tools have changed is shown with each call that nobody was asked about, and by `/diff`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from deepagents.events import ToolFinished
from deepagents_cli.protocol import Happened, Idle
from tests.cli.openai_server import OpenAIServer, call
from tests.cli.session.conftest import StartWorker, Worker


def test_what_the_agent_and_its_subagents_changed_is_known_also_by_the_next_worker(
    worker: Worker, start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    (directory / "old").mkdir()
    (directory / "old" / "list.md").write_text("bread\n")
    server.then(
        call("edit_file", file_path="notes.md", old_string="first", new_string="1st"),
        call("task", description="Write new.md", subagent_type="general-purpose"),
        call("write_file", file_path="new.md", content="hello\n"),
        "It is written.",
        call("delete", file_path="old"),
        call("execute", command="echo third line >> notes.md"),
        "Done.",
    )
    worker.open(mode="full")
    worker.say("Change things.")

    shown = [_finished(worker, name).details for name in ("edit_file", "write_file", "delete", "execute")]
    assert shown[0][-3:] == ["-first line", "+1st line", " second line"]
    assert shown[1][-1] == "+hello"
    assert shown[2][-1] == "-bread"
    assert shown[3] == []
    worker.wait(Idle)
    worker.kill()

    again = start()
    again.open(resume=True)
    diff = again.command("diff").text
    assert diff.startswith("````diff\n")
    for change in ("-first line\n+1st line", "+third line", "+hello", "-bread"):
        assert change in diff


def test_no_secret_and_nothing_behind_a_link_is_kept(
    worker: Worker, server: OpenAIServer, directory: Path, state: Path, tmp_path: Path
) -> None:
    (directory / ".env").write_text("KEY=hunter2\n")
    (tmp_path / "outside").write_text("password=hunter2\n")
    (directory / "link").symlink_to(tmp_path / "outside")
    server.then(
        call("edit_file", file_path=".env", old_string="hunter2", new_string="hunter3"),
        call("write_file", file_path="link", content="x"),
        call("delete", file_path="link"),
        "Done.",
    )
    worker.open(mode="full")

    worker.turn("Change things.")

    assert (directory / ".env").read_text() == "KEY=hunter3\n"
    assert ".env: a secret, no text, or too large to be shown" in worker.command("diff").text
    assert not any("hunter" in str(each.details) for each in worker.all(Happened))
    with closing(sqlite3.connect(state / "threads.sqlite")) as database:
        assert database.execute("SELECT text FROM deepagents_changes").fetchall() == [(None,), (None,)]


def _finished(worker: Worker, name: str) -> Happened:
    while True:
        message = worker.wait(Happened)
        if isinstance(message.event, ToolFinished) and message.event.name == name:
            return message
