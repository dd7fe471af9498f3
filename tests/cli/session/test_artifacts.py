"""What is moved out of a conversation: out of git's sight and of searches, and still there to be read."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from deepagents.backends import LocalSandbox
from deepagents.testing import Asked, ScriptedModel, call
from tests.cli.conftest import Command

pytestmark = pytest.mark.slow

PLACE = ".deepagents/artifacts"
RESULTS = f"{PLACE}/large_tool_results"
FLAGS = [
    pytest.param((), marks=pytest.mark.skipif(LocalSandbox.available() is not None, reason="no sandbox")),
    ("--shell",),
]
LONG = "canary " * 12_000


@pytest.fixture
def repository(directory: Path) -> Path:
    """The directory as a repository in which nothing has changed, with a long file."""
    (directory / "long.md").write_text(f"{LONG}\nthe end\n")
    (directory / ".deepagents/agents").mkdir(parents=True)
    (directory / ".deepagents/agents/reviewer.md").write_text("---\ndescription: Reviews\n---\nReview.\n")
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", "first")
    return directory


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout


def reads_what_was_moved(*further: AIMessage) -> ScriptedModel:
    """Make a large result, read the end of its file, make further calls, and answer."""

    def reads(asked: Asked) -> AIMessage:
        (path,) = {word for word in asked.last.split() if f"/{RESULTS}/" in word}
        return call("execute", command=f"tail -c 80 {path}")

    return ScriptedModel(call("execute", command="cat long.md"), reads, *further, "Done.")


@pytest.mark.parametrize("flags", FLAGS)
def test_a_large_result_stays_out_of_the_repository_and_commands_read_it(
    cli: Command, repository: Path, flags: tuple[str, ...]
) -> None:
    model = reads_what_was_moved()

    ended = cli.run("read it", "--yes", *flags, model=model)

    assert ended.code == 0
    assert "the end" in model.asked[2].last
    assert git(repository, "status", "--porcelain") == ""
    (kept,) = (repository / RESULTS).iterdir()
    assert LONG in kept.read_text()
    (repository / ".deepagents/agents/second.md").write_text("new")
    assert git(repository, "status", "--porcelain") == "?? .deepagents/agents/second.md\n"


def test_a_project_that_wants_it_seen_gets_none_of_it(cli: Command, repository: Path) -> None:
    for name in (PLACE, RESULTS):
        (repository / name).mkdir()
        (repository / name / ".gitignore").write_text("!*\n")
    git(repository, "add", "--all")
    git(repository, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", "next")

    model = ScriptedModel(call("execute", command="cat long.md"), "Done.")
    cli.run("read it", "--yes", "--shell", model=model)

    assert len(list((repository / RESULTS).iterdir())) == 2
    assert git(repository, "status", "--porcelain") == f" M {PLACE}/.gitignore\n"


@pytest.mark.parametrize("provider", ["scripted", "local"])
def test_without_a_question_also_where_nothing_may_change(
    cli: Command, repository: Path, provider: str
) -> None:
    asked_for = LONG * 3
    model = ScriptedModel("Understood.", provider=provider)

    ended = cli.run(asked_for, "--mode", "plan", model=model)

    assert ended.code == 0
    assert [each.read_text() for each in (repository / PLACE).glob("*/*.md")] == [asked_for]
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize("flags", FLAGS)
def test_searches_from_above_pass_over_it_and_one_that_names_it_does_not(
    cli: Command, repository: Path, flags: tuple[str, ...]
) -> None:
    (repository / "long.md").write_text("canary\n" * 12_000)
    model = ScriptedModel(
        call("execute", command="cat long.md"),
        call("grep", pattern="canary", output_mode="files_with_matches"),
        call("glob", pattern=".deepagents/**"),
        call("grep", pattern="canary", path=RESULTS),
        call("glob", pattern=f"{PLACE}/**"),
        "Done.",
    )

    cli.run("search", "--yes", *flags, model=model)

    above, files, within, named = (asked.last for asked in model.asked[2:])
    assert "long.md" in above
    assert "reviewer.md" in files
    assert PLACE not in above + files
    assert RESULTS in within
    assert RESULTS in named


def test_what_lies_in_the_earlier_place_is_still_read(cli: Command, repository: Path) -> None:
    earlier = repository / "conversation_history/one.md"
    earlier.parent.mkdir()
    earlier.write_text("what was before\n")
    model = ScriptedModel(call("read_file", file_path="conversation_history/one.md"), "Read.")

    cli.run("go on", model=model)

    assert "what was before" in model.asked[1].last


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("link", [".deepagents", PLACE, RESULTS])
@pytest.mark.parametrize(
    ("target", "brings"),
    [("planted", ()), ("planted", (".gitignore", "artifacts/.gitignore")), ("../outside", ())],
)
def test_no_link_leads_it_elsewhere(
    cli: Command, directory: Path, flags: tuple[str, ...], link: str, target: str, brings: Sequence[str]
) -> None:
    (directory / "long.md").write_text(f"{LONG}\nthe end\n")
    place = directory / target
    (place / "artifacts").mkdir(parents=True)
    for name in brings:
        (place / name).write_text("*\n")
    before = sorted(place.rglob("*"))
    (directory / link).parent.mkdir(parents=True, exist_ok=True)
    (directory / link).symlink_to(place)
    model = ScriptedModel(call("execute", command="cat long.md"), "Done.")

    ended = cli.run("read it", "--yes", *flags, model=model)

    assert ended.code == 0
    assert sorted(place.rglob("*")) == before
    assert "could not be saved" in model.asked[1].last
