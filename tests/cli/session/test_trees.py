"""Subagents with `worktree: true` work in trees of their own, and what they change is merged back."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deepagents.errors import ToolFailure
from deepagents.events import SubagentStarted, Token
from deepagents_cli import protocol
from deepagents_cli.session.workplace.trees import Tree
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import OpenAIServer, Reply, Request, call
from tests.cli.session.conftest import OPENING, StartWorker, Worker
from tests.waiting import until

pytestmark = pytest.mark.slow

PAINTER = "---\nname: painter\ndescription: Paints.\nworktree: true\n---\nYou paint.\n"
NOTES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


@pytest.fixture(autouse=True)
def painter(directory: Path) -> None:
    """The directory has an agent that works in a tree, and a file of seven lines."""
    (directory / ".deepagents/agents").mkdir(parents=True)
    (directory / ".deepagents/agents/painter.md").write_text(PAINTER)
    (directory / "notes.md").write_text(NOTES)


def script(server: OpenAIServer, main: list[Any], tasks: Mapping[str, list[Reply]]) -> None:
    """Answer the main agent in order, and each task with calls of its own, whichever comes first."""
    done = {each: [*replies] for each, replies in tasks.items()}

    def answer(request: Request) -> Any:
        asked = request.texts("user")[0]
        if asked in done:
            return done[asked].pop(0) if done[asked] else f"{asked} is done."
        return main.pop(0)

    server.then(*[answer] * 40)


def tasks(*texts: str) -> Reply:
    calls = [("task", {"description": each, "subagent_type": "painter"}) for each in texts]
    return Reply(calls=calls)


def edit(old: str, new: str, path: str = "notes.md") -> Reply:
    return call("edit_file", file_path=path, old_string=old, new_string=new)


def results(server: OpenAIServer) -> list[str]:
    return server.requests[-1].texts("tool")


def trees(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.parent.glob("files.*"))


def test_parallel_calls_change_one_file_each_in_a_tree_of_its_own(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="auto")
    script(
        server,
        [tasks("first", "second"), "All is merged."],
        {
            "first": [edit("one", "ONE"), call("write_file", file_path="new/a.md", content="a\n")],
            "second": [edit("seven", "SEVEN"), call("delete", file_path="plan.md")],
        },
    )
    (directory / "plan.md").write_text("plan\n")
    worker.turn("paint")

    assert (directory / "notes.md").read_text() == NOTES.replace("one", "ONE").replace("seven", "SEVEN")
    assert (directory / "new/a.md").read_text() == "a\n"
    assert not (directory / "plan.md").exists()
    assert sorted(results(server)) == [
        "first is done.\n\n[Merged: new/a.md, notes.md]",
        "second is done.\n\n[Merged: plan.md (removed), notes.md]",
    ]
    assert trees(directory) == []


def test_nothing_is_copied_where_git_cannot_say_what_it_ignores(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    (directory / ".git").mkdir()
    (directory / ".git/config").write_text("[broken\n")
    worker.open(mode="auto")
    script(server, [tasks("first"), "It cannot be done."], {"first": [edit("two", "TWO")]})
    worker.turn("paint")

    assert "git cannot list its files: fatal: " in results(server)[0]
    assert (directory / "notes.md").read_text() == NOTES
    assert trees(directory) == []


def test_a_conflict_is_named_and_both_versions_are_kept(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="auto")
    script(
        server,
        [tasks("first", "second"), "Both are there."],
        {"first": [edit("two", "FIRST")], "second": [edit("two", "SECOND")]},
    )
    worker.turn("paint")

    (merged,) = [each for each in results(server) if "[Merged: notes.md]" in each]
    (apart,) = [each for each in results(server) if "not merged" in each.casefold()]
    won, lost = ("FIRST", "SECOND") if merged.startswith("first") else ("SECOND", "FIRST")
    (kept,) = (directory / ".deepagents/artifacts/conflicts").glob("painter-*/notes.md")
    assert (
        f"kept below .deepagents/artifacts/conflicts/{kept.parent.name}/: notes.md (it was changed" in apart
    )
    assert (directory / "notes.md").read_text() == NOTES.replace("two", won)
    assert kept.read_text() == NOTES.replace("two", lost)
    assert trees(directory) == []


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@needs_sandbox
def test_a_tree_begins_with_what_is_not_committed_and_brings_nothing_that_git_ignores(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    for words in (["init", "-q"], ["add", "notes.md"], ["commit", "-q", "-m", "first"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=directory, env={"PATH": os.environ["PATH"]}, check=True,
        )  # fmt: skip
    (directory / "notes.md").write_text(f"zero\n{NOTES}")
    (directory / "untracked.md").write_text("x\n")
    (directory / ".gitignore").write_text("*.log\nbig/\n")
    (directory / "big").mkdir()
    (directory / "big/data").write_text("x\n")
    (directory / "folder").mkdir()
    (directory / "folder/inner.md").write_text("x\n")
    worker.open(mode="auto")
    command = (
        "ls; cat notes.md | head -1; echo y >> untracked.md; echo log > made.log; mkdir big; "
        "echo z > big/new; mv untracked.md moved.md; printf '\\0\\1' > picture.bin; echo run > run.sh; "
        "chmod 755 run.sh; ln -s notes.md link; rm -r folder; ln -s .. folder"
    )
    script(server, [tasks("first"), "Done."], {"first": [call("execute", command=command)]})
    worker.turn("paint")

    assert (directory / "moved.md").read_text() == "x\ny\n"
    assert not (directory / "untracked.md").exists()
    assert (directory / "picture.bin").read_bytes() == b"\0\1"
    assert (directory / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (directory / "link").readlink() == Path("notes.md")
    assert (directory / "folder").readlink() == Path("..")
    assert not (directory / "made.log").exists()
    assert sorted(each.name for each in (directory / "big").iterdir()) == ["data"]
    listed = next(each for each in server.requests[2].texts("tool"))
    assert "untracked.md" in listed
    assert "zero" in listed
    assert "big" not in listed.split("zero")[0]


def test_in_mode_ask_the_person_sees_the_changes_and_may_refuse_them(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="ask")
    script(
        server,
        [tasks("first"), "It is merged.", tasks("second"), "It is not."],
        {"first": [edit("one", "ONE")], "second": [edit("two", "TWO")]},
    )
    worker.say("paint")
    asked = worker.wait(protocol.Ask)
    shown = str(asked)
    before = (directory / "notes.md").read_text()
    worker.decide(asked, "approve")
    worker.wait(protocol.Idle)
    after = (directory / "notes.md").read_text()
    worker.say("again")
    worker.decide(worker.wait(protocol.Ask), "reject")
    worker.wait(protocol.Idle)

    assert "merge_changes" in shown
    assert "-one" in shown
    assert "+ONE" in shown
    assert (before, after) == (NOTES, NOTES.replace("one", "ONE"))
    assert (directory / "notes.md").read_text() == after
    (tree,) = trees(directory)
    assert (directory.parent / tree / "notes.md").read_text() == after.replace("two", "TWO")
    assert f"none was merged. They are in {directory.parent / tree}.]" in results(server)[-1]


def test_what_a_person_is_asked_about_is_refused_in_a_tree_and_not_merged(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="auto")
    script(
        server,
        [tasks("first"), "Done."],
        {"first": [call("write_file", file_path=".env", content="KEY=1\n")]},
    )
    worker.turn("paint")

    asked = [each for request in server.requests for each in request.texts("tool")]
    assert any("[permission_denied]" in each for each in asked)
    assert not (directory / ".env").exists()


def test_a_killed_subagent_leaves_its_tree_and_nothing_else(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="auto")
    script(
        server,
        [tasks("first")],
        {"first": [edit("one", "ONE"), Reply("It never ends", hold=server.closing)]},
    )
    worker.say("paint")
    for _ in range(3):
        server.wait_for_request()
    before = {each.name for each in directory.iterdir()}
    worker.kill()

    (tree,) = trees(directory)
    assert (directory / "notes.md").read_text() == NOTES
    assert {each.name for each in directory.iterdir()} == before
    assert (directory.parent / tree / "notes.md").read_text() == NOTES.replace("one", "ONE")


def test_a_stopped_subagent_says_where_its_tree_is(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="auto")
    script(
        server,
        [tasks("first")],
        {"first": [edit("one", "ONE"), Reply("It never ends", hold=server.closing)]},
    )
    worker.say("paint")
    worker.event(Token)
    worker.send(protocol.Stop())
    worker.wait_for_end_of_turn()

    (tree,) = trees(directory)
    assert (directory / "notes.md").read_text() == NOTES
    said = [each.text for each in worker.all(protocol.Notice)]
    assert f"what painter has changed is in {directory.parent / tree}, and nothing was merged" in said


def test_undo_takes_back_what_was_merged(worker: Worker, server: OpenAIServer, directory: Path) -> None:
    (directory / "plan.md").write_text("plan\n")
    worker.open(mode="auto")
    script(
        server,
        [tasks("first"), "It is merged."],
        {
            "first": [
                edit("one", "ONE"),
                call("write_file", file_path="new/a.md", content="a\n"),
                call("delete", file_path="plan.md"),
            ]
        },
    )
    worker.turn("paint")
    merged = (directory / "notes.md").read_text(), (directory / "plan.md").exists()
    shown = worker.command("undo")
    worker.command("undo", shown.choices[0].value)

    assert merged == (NOTES.replace("one", "ONE"), False)
    assert (directory / "notes.md").read_text() == NOTES
    assert (directory / "plan.md").read_text() == "plan\n"
    assert not (directory / "new/a.md").exists()


def test_limits_count_what_subagents_in_trees_use(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="auto", options={**OPENING.options, "model_calls": 3})
    script(server, [tasks("first"), "Done."], {"first": [edit("one", "ONE"), edit("two", "TWO")] * 5})
    worker.turn("paint")

    assert len(server.requests) <= 4, "the last one asks for an answer"


def test_a_call_that_was_killed_goes_on_in_its_tree(
    start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    first = start()
    thread = first.open(mode="auto").thread
    script(
        server,
        [tasks("first"), "It is merged."],
        {"first": [edit("one", "ONE"), Reply("It never ends", hold=server.closing), edit("two", "TWO")]},
    )
    first.say("paint")
    first.event(Token)
    first.kill()
    second = start()
    second.open(mode="auto", thread=thread)
    second.say("")
    second.wait(protocol.Idle)

    assert (directory / "notes.md").read_text() == NOTES.replace("one", "ONE").replace("two", "TWO")
    assert trees(directory) == []


def test_a_subagent_is_stopped_while_its_model_has_not_begun_to_answer(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    worker.open(mode="auto")

    def wait(request: Request) -> str:
        server.closing.wait()
        return "Too late."

    server.then(tasks("first"), edit("one", "ONE"), wait)
    worker.say("paint")
    for _ in range(3):
        server.wait_for_request()
    worker.send(protocol.Stop())

    assert worker.wait_for_end_of_turn().end == "stopped"
    assert len(trees(directory)) == 1


@pytest.mark.parametrize("stops", [1, 5])
def test_a_subagent_that_is_stopped_while_its_tree_is_copied_leaves_none(
    worker: Worker, server: OpenAIServer, directory: Path, stops: int
) -> None:
    for number in range(3_000):
        (directory / f"{number}.txt").touch()
    worker.open(mode="auto")
    script(server, [tasks("first")], {"first": []})
    worker.say("paint")
    worker.event(SubagentStarted)
    while not trees(directory):
        os.sched_yield()
    for _ in range(stops):
        worker.send(protocol.Stop())

    assert worker.wait_for_end_of_turn().end == "stopped"
    # A copy that takes longer than a stop waits for is removed when it has ended.
    until(lambda: not trees(directory))


def test_a_copy_that_was_cut_off_is_made_anew_and_what_is_no_copy_stays(
    directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEEPAGENTS_STATE", str(tmp_path / "state"))
    tree = Tree(directory, "painter-1")
    tree.make()
    (base,) = (tmp_path / "state/trees").iterdir()
    # As a process leaves it that is killed while it copies.
    base.rename(base.with_suffix(".new"))
    (tree.path / "notes.md").unlink()
    tree.make()
    assert (tree.path / "notes.md").read_text() == NOTES

    other = Tree(directory, "painter-2")
    other.path.mkdir()
    (other.path / "own.md").touch()
    with pytest.raises(ToolFailure, match="is there already"):
        other.make()
    assert other.remove_unchanged()
    assert (other.path / "own.md").exists()


def test_a_copy_reaches_through_no_link(
    directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEEPAGENTS_STATE", str(tmp_path / "state"))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("secret")
    (directory / "folder").mkdir()
    (directory / "folder/key").touch()
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=directory, check=True)
    # What an agent can do: git still lists the file, and not the link.
    shutil.rmtree(directory / "folder")
    (directory / "folder").symlink_to(tmp_path / "secret")
    (directory / ".gitignore").write_text("folder\n")
    tree = Tree(directory, "painter-1")
    tree.make()

    assert not (tree.path / "folder").exists()
    assert (tree.path / "notes.md").read_text() == NOTES
