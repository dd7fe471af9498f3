"""Commands in a worktree use the repository of its main tree, and reach nothing there that others obey."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepagents.backends import LocalSandbox
from tests.sandbox.users import UNAVAILABLE

pytestmark = [
    pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE)),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]
_RUNS = '[core]\\n\\tfsmonitor = "touch {ran}; false"\\n\\tworktree = {work}\\n'


def git(place: Path, *words: str) -> str:
    ran = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=place, env={"PATH": os.environ["PATH"]}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return ran.stdout.strip()


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with a linked worktree next to it."""
    place = tmp_path / "main"
    place.mkdir()
    git(place, "init", "-q", "-b", "trunk")
    git(place, "config", "user.name", "a")
    git(place, "config", "user.email", "a@b")
    (place / "notes.md").write_text("first\n")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "first")
    git(place, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    return place


@pytest.fixture
def sandbox(main: Path) -> Iterator[LocalSandbox]:
    """A sandbox in the worktree, which was given the repository."""
    with LocalSandbox(main.parent / "side", writable=[main / ".git"]) as made:
        yield made


def test_git_works_in_a_worktree_and_leaves_the_main_tree_as_it_is(sandbox: LocalSandbox, main: Path) -> None:
    before = {each: (main / ".git" / each).read_bytes() for each in ("HEAD", "index", "config")}

    for command in (
        "echo more >> notes.md; git add -A; git commit -q -m second; git status",
        "git switch -q -c other; git commit -q --allow-empty -m third; git switch -q side",
        "git merge -q other && git branch -q -d other",
        "echo x >> notes.md; git stash -q; git stash pop -q; git checkout -q notes.md; git log -1",
    ):
        ended = sandbox.execute(command)
        assert ended.exit_code == 0, ended.output

    assert git(main, "log", "--format=%s", "side") == "third\nsecond\nfirst"
    assert git(main, "status", "--porcelain") == ""
    assert {each: (main / ".git" / each).read_bytes() for each in before} == before
    assert sandbox.execute(f"cat {main}/notes.md").exit_code != 0, "the main tree was not given"


@pytest.mark.parametrize(
    "command",
    [
        "echo x > {git}/hooks/pre-commit",
        "mv {git}/hooks {git}/old",
        "git config core.fsmonitor evil",
        "echo x >> {git}/config",
        "echo x > {git}/config.worktree",
        "echo 'ref: refs/heads/side' > {git}/HEAD",
        "echo x > {git}/index",
        "mkdir -p {git}/modules/sub",
        "mkdir -p {git}/worktrees/side/modules/sub",
        "echo /elsewhere > {git}/worktrees/side/commondir",
        "echo x > {git}/worktrees/side/config.worktree",
        "echo 'gitdir: {git}/evil' > .git",
        "rm .git",
        "mv {git} {git}2",
    ],
)
def test_what_others_obey_in_the_repository_is_not_changed(
    sandbox: LocalSandbox, main: Path, command: str
) -> None:
    def everything() -> dict[Path, bytes]:
        places = (main, main.parent / "side")
        return {each: each.read_bytes() for place in places for each in place.rglob("*") if each.is_file()}

    before = everything()

    sandbox.execute(command.format(git=main / ".git"))

    assert everything() == before
    assert sorted(each.name for each in (main / ".git").glob("m*")) == []


def test_file_tools_do_not_change_it_either(sandbox: LocalSandbox, main: Path) -> None:
    for name in ("hooks/pre-commit", "config", "HEAD", "worktrees/side/commondir", "modules/sub/config"):
        assert sandbox.write(f"{main}/.git/{name}", "x").error, name
    assert sandbox.write(f"{main.parent}/side/.git", "gitdir: /evil\n").error


def test_a_repository_that_is_hidden_in_that_of_the_main_tree_names_no_programs(
    sandbox: LocalSandbox, main: Path, tmp_path: Path
) -> None:
    ran, evil = tmp_path / "ran", main / ".git/evil"
    config = _RUNS.format(ran=ran, work=tmp_path / "side/sub")

    made = sandbox.execute(
        f"git init -q --separate-git-dir={evil} sub && cd sub && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && cd .. && "
        f"git add sub && printf '{config}' >> {evil}/config"
    )

    assert made.exit_code == 0, made.output
    git(tmp_path / "side", "status")
    assert not ran.exists()
