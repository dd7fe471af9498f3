"""A person works in a worktree, leaves, and is asked whether it stays; nothing goes without a written yes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.openai_server import OpenAIServer, call
from tests.cli.terminal.person import Home, Person
from tests.cli.tmux import needs_tmux

pytestmark = [
    needs_tmux,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.slow,
]
ASKED = r"^Keep the worktree\? \[K\]eep, \[r\]emove: *$"
COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -q -m 'write a letter'"


@pytest.fixture
def home(tmp_path: Path, server: OpenAIServer) -> Home:
    """A repository with one commit, and a home."""
    made = Home(tmp_path, server, {"notes.md": "first line\n"})
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        git(made.directory, *words)
    return made


@pytest.fixture
def person(home: Home) -> Iterator[Person]:
    """A person at a conversation in a worktree."""
    with home.sit_down("--worktree", "fix", "--mode", "full") as person:
        person.sees(r"^worktree \S+kitchen\.fix, branch fix, from commit")
        yield person


def git(place: Path, *words: str) -> str:
    ran = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=place, env={"PATH": os.environ["PATH"]}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return ran.stdout.strip()


def work(person: Person) -> Path:
    """Have a commit and a file in no commit made."""
    person.asks("Write.", call("write_file", file_path="letter.md", content="Dear\n"), "Written.")
    person.sees("^Written.")
    person.asks("Commit.", call("execute", command=COMMIT), "Committed.")
    person.sees("^Committed.")
    person.asks("More.", call("write_file", file_path="more.md", content="More\n"), "More is written.")
    person.sees("^More is written.")
    person.sees_gone("Esc stops")
    return person.directory.parent / "kitchen.fix"


def test_files_are_named_as_they_are_in_the_worktree(person: Person) -> None:
    (person.directory / "only_main.md").write_text("main\n")
    (person.directory.parent / "kitchen.fix/only_fix.md").write_text("fixed\n")

    person.terminal.type("See @only")
    person.sees(r"only_fix\.md")
    assert "only_main.md" not in person.terminal.screen()
    person.presses("C-u")
    person.asks("See @only_fix.md", "Seen.")
    person.sees("^Seen.")

    assert "fixed" in person.server.requests[-1].texts("user")[0]


def test_only_a_written_yes_removes_what_is_nowhere_else_and_the_branch_stays(person: Person) -> None:
    place = work(person)

    person.presses("C-d")
    shown = person.sees(ASKED)
    person.enters("r")
    person.sees(r"^This loses 1 file.* in no commit; 1 commit.* not merged.* on branch fix")
    person.enters("yes")
    person.sees("^Removed: .*its branch fix is kept")

    assert "  1 commit:\n" in shown
    assert "write a letter" in shown
    assert "?? more.md" in shown
    assert "merge fix" in shown
    assert not place.exists()
    assert git(person.directory, "log", "--format=%s", "fix") == "write a letter\nfirst"
    assert git(person.directory, "worktree", "list").count("\n") == 0


def test_everything_else_keeps_it(person: Person) -> None:
    place = work(person)

    person.presses("C-d")
    person.sees(ASKED)
    person.enters("r")
    person.sees("Write yes to remove it: *$")
    person.enters("y")
    person.sees("^Kept: ")

    assert (place / "more.md").exists()


def test_a_worktree_that_holds_nothing_goes_with_its_branch_and_the_session_goes_on_in_the_main_tree(
    person: Person, home: Home
) -> None:
    person.asks("Hello?", "Hello.")
    person.sees("^Hello.")
    person.presses("C-d")
    person.sees("^  nothing that is not elsewhere too")
    person.sees(ASKED)
    person.enters("r")
    person.sees(r"^Removed: \S+kitchen\.fix$")

    assert git(home.directory, "branch", "--format=%(refname:short)") == "main"
    with home.sit_down("--continue", "--mode", "full") as again:
        again.sees("^Hello.")
        again.asks("Write.", call("write_file", file_path="letter.md", content="Dear\n"), "Written.")
        again.sees("^Written.")
    assert (home.directory / "letter.md").exists()
