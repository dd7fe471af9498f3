"""A conversation begins sessions in worktrees, and moves between them and the main tree."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deepagents_cli import protocol
from tests.cli.openai_server import OpenAIServer, call
from tests.cli.session.conftest import OPENING, StartWorker, Worker

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.slow,
]


@pytest.fixture(autouse=True)
def repository(directory: Path) -> Path:
    """The directory as a repository, with one commit."""
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=directory, env={"PATH": os.environ["PATH"]}, check=True,
        )  # fmt: skip
    return directory


def write(worker: Worker, server: OpenAIServer, name: str) -> None:
    server.then(call("write_file", file_path=name, content="x\n"), "Written.")
    worker.turn(f"write {name}")


def test_a_new_session_in_a_worktree_and_back(worker: Worker, server: OpenAIServer, directory: Path) -> None:
    worker.open(mode="auto")
    write(worker, server, "main.md")

    begun = worker.command("worktree", "side")
    side = worker.last(protocol.Ready)
    write(worker, server, "side.md")
    listed = worker.command("resume").choices
    (other,) = listed
    worker.command("resume", other.value)
    back = worker.last(protocol.Ready)
    write(worker, server, "back.md")

    place = directory.parent / "files.side"
    assert f"A new session, in the worktree {place}, branch side, from commit" in begun.text
    assert (side.directory, back.directory) == (str(place), str(directory))
    assert worker.last(protocol.Status).mode == "auto"
    assert {each.name for each in place.glob("*.md")} == {"notes.md", "side.md"}
    assert {each.name for each in directory.glob("*.md")} == {"notes.md", "main.md", "back.md"}
    (there,) = worker.command("resume").choices
    assert "worktree side" in there.detail


def test_a_killed_worker_is_opened_again_in_the_worktree(
    start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    first = start()
    first.open(mode="auto")
    first.command("worktree", "side")
    thread = first.last(protocol.Ready).thread
    first.kill()

    second = start()
    second.open(mode="auto", thread=thread)
    write(second, server, "side.md")

    assert (directory.parent / "files.side/side.md").exists()


def test_where_there_is_no_repository_the_session_goes_on(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    shutil.rmtree(directory / ".git")
    worker.open(mode="auto")
    worker.send(protocol.Invoke(1, "worktree", "side"))
    while not isinstance(refused := worker.take(), protocol.Result):
        pass

    write(worker, server, "main.md")

    assert "is in no git repository" in (refused.error or "")
    assert (directory / "main.md").exists()


def test_commits_of_the_agent_are_on_the_branch_of_its_worktree(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="ask", options={**OPENING.options, "worktree": "side"})
    commit = "git add -A && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m agent"
    server.then(call("execute", command=commit), "Done.")
    worker.say("commit it")
    worker.decide(worker.wait(protocol.Ask), "approve")
    worker.wait(protocol.Idle)

    log = subprocess.run(
        ["git", "log", "--format=%s", "main..side"], cwd=directory, capture_output=True, text=True, check=True
    )
    assert log.stdout == "agent\n"
