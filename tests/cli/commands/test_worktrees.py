"""A session in a git worktree of its own: made, found again, listed, made anew. The main tree stays."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.conftest import Command, Ended

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.slow,
]


def git(place: Path, *words: str) -> str:
    ran = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=place, env={"PATH": os.environ["PATH"]}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return ran.stdout.strip()


@pytest.fixture
def repository(directory: Path) -> Path:
    """The directory as a repository, with one commit."""
    git(directory, "init", "-q", "-b", "main")
    (directory / "lib").mkdir()
    (directory / "lib/a.py").write_text("a = 1\n")
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "first")
    return directory


def write(cli: Command, *options: str, name: str = "new.md") -> Ended:
    model = ScriptedModel(call("write_file", file_path=f"{name}", content="x\n"), "Done.")
    return cli.run("write it", "--yes", *options, model=model)


def files(place: Path) -> set[str]:
    return {each.name for each in place.iterdir()} - {".git", ".deepagents"}


def test_a_task_works_in_a_worktree_and_says_what_is_not_in_it_and_how_to_merge(
    cli: Command, repository: Path
) -> None:
    (repository / "notes.md").write_text("changed\n")
    (repository / "untracked.md").write_text("x\n")
    before = (repository / ".git/config").read_bytes()

    ended = write(cli, "--worktree", "fix")

    place = repository.parent / "files.fix"
    assert ended.code == 0, ended.err
    assert files(place) == {"notes.md", "lib", "new.md"}
    assert (place / "notes.md").read_text() == "first line\nsecond line\n"
    assert files(repository) == {"notes.md", "lib", "untracked.md"}
    assert f"1 changed and 1 untracked files of {repository} are not in it" in ended.err
    assert f"  1 file in no commit:\n    ?? new.md\nCommit:  git -C {place} add" in ended.err
    assert f"Merge:   git -C {repository} merge fix\nRemove:" in ended.err
    assert git(place, "branch", "--show-current") == "fix"
    assert (repository / ".git/config").read_bytes() == before


def test_sessions_go_on_in_their_worktree_and_are_listed_with_it(cli: Command, repository: Path) -> None:
    place = repository.parent / "files.fix"
    write(cli, "--worktree", "fix")
    listed = cli("sessions", "list", "--dir", str(repository))
    write(cli, "--continue", name="second.md")
    write(cli, "--thread", "fix", name="third.md")
    write(cli, "--worktree=fix", name="fourth.md")
    write(cli, name="fifth.md")
    write(cli, "--continue", name="sixth.md")
    write(cli, "--continue", "--worktree", "fix", name="seventh.md")

    assert "  worktree fix  fix\n" in listed.out
    made = {"new.md", "second.md", "third.md", "fourth.md", "seventh.md"}
    assert files(place) == {"notes.md", "lib", *made}
    assert files(repository) == {"notes.md", "lib", "fifth.md", "sixth.md"}


def test_without_a_name_branch_and_session_have_the_same(cli: Command, repository: Path) -> None:
    ended = write(cli, "--worktree")

    (branch,) = {*git(repository, "branch", "--format=%(refname:short)").split()} - {"main"}
    assert f"thread {branch} " in ended.out
    assert (repository.parent / f"files.{branch}" / "new.md").exists()


def test_a_directory_of_a_repository_is_the_same_one_in_the_worktree(cli: Command, repository: Path) -> None:
    model = ScriptedModel(call("write_file", file_path="b.py", content="x\n"), "Done.")

    ended = cli("run", "go", "--yes", "--dir", str(repository / "lib"), "--worktree=fix", model=model)

    assert ended.code == 0, ended.err
    assert files(repository.parent / "files.fix/lib") == {"a.py", "b.py"}
    assert "worktree fix" in cli("sessions", "list", "--dir", str(repository / "lib")).out


def test_a_worktree_that_was_removed_is_made_again_from_its_branch(cli: Command, repository: Path) -> None:
    place = repository.parent / "files.fix"
    write(cli, "--worktree=fix")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "second")
    git(repository, "worktree", "remove", str(place))

    ended = write(cli, "--continue", name="second.md")

    assert "made again: worktree" in ended.err
    assert files(place) == {"notes.md", "lib", "new.md", "second.md"}
    assert "  1 commit:\n" in ended.err


def test_a_session_whose_branch_is_gone_goes_on_in_the_main_tree(cli: Command, repository: Path) -> None:
    write(cli, "--worktree=fix")
    git(repository, "worktree", "remove", "--force", str(repository.parent / "files.fix"))
    git(repository, "branch", "-D", "fix")

    ended = write(cli, "--continue", name="second.md")

    assert f"so it goes on in {repository}" in ended.err
    assert files(repository) == {"notes.md", "lib", "second.md"}


@pytest.mark.parametrize(
    ("prepare", "name", "said"),
    [
        ("", "fix", "is in no git repository, and only such a one has worktrees: make it one (git init"),
        ("git init -q", "fix", "has no commit yet that a worktree could begin with"),
        ("commit", "fix the login", "'fix the login' is not a name for a branch; write one without blanks"),
        ("commit", "-x", "'-x' is not a name for a branch"),
        ("commit; mkdir ../files.fix", "fix", "files.fix' is there and not on a branch 'fix' of this"),
        ("commit", "main", "git makes no worktree: 'main' is already checked out at"),
    ],
)
def test_where_there_can_be_no_worktree_the_way_out_is_said(
    cli: Command, directory: Path, prepare: str, name: str, said: str
) -> None:
    commit = "git init -q -b main; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first"
    subprocess.run(prepare.replace("commit", commit, 1), shell=True, cwd=directory, check=True)

    ended = write(cli, f"--worktree={name}")

    assert ended.code in (1, 2)
    assert said in ended.err
    assert not (directory / "new.md").exists()


def test_programs_that_a_repository_names_are_not_run(cli: Command, repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (repository / ".gitattributes").write_text("*.md filter=evil\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "attributes")
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    for key in ("core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process"):
        git(repository, "config", key, f"touch {ran}; cat")
    git(repository, "config", "filter.evil.required", "true")

    ended = write(cli, "--worktree=fix")

    assert ended.code == 0, ended.err
    assert files(repository.parent / "files.fix") == {".gitattributes", "notes.md", "lib", "new.md"}
    assert not ran.exists()


def test_a_worktree_of_a_trusted_repository_is_trusted(
    cli: Command, repository: Path, tmp_path: Path
) -> None:
    settings = repository / ".deepagents/settings.toml"
    settings.parent.mkdir()
    settings.write_text('model = "scripted"\n[hooks]\nend_of_turn = ["touch hooked"]\n')
    git(repository, "add", "-A", "-f")
    git(repository, "commit", "-q", "-m", "hook")
    (tmp_path / "copy/.deepagents").mkdir(parents=True)
    (tmp_path / "copy/.deepagents/settings.toml").write_text(settings.read_text())
    assert cli("trust", str(repository), "--yes").code == 0
    write(cli, "--worktree=fix")
    # A file that names the repository is no proof: anybody can write one.
    (tmp_path / "copy/.git").write_text(f"gitdir: {repository}/.git/worktrees/files.fix\n")

    trusted = cli("run", "go", "--dir", str(repository.parent / "files.fix"), model=ScriptedModel("Done."))
    copied = cli("run", "go", "--dir", str(tmp_path / "copy"), model=ScriptedModel("Done."))

    assert "not used until you trust" not in trusted.err
    assert "not used until you trust this directory: 1 setting, 1 hook" in copied.err


def test_a_worktree_whose_directory_was_removed_by_hand_is_made_again(cli: Command, repository: Path) -> None:
    write(cli, "--worktree=fix")
    shutil.rmtree(repository.parent / "files.fix")

    ended = write(cli, "--continue", name="second.md")

    assert ended.code == 0, ended.err
    assert files(repository.parent / "files.fix") == {"notes.md", "lib", "second.md"}


def test_a_task_in_a_worktree_is_taken_back_from_the_directory_and_it_is_said_where(
    cli: Command, repository: Path
) -> None:
    write(cli, "--worktree", "fix")
    place = repository.parent / "files.fix"

    taken = cli("undo", "--yes", "--dir", str(repository))
    assert taken.out.splitlines()[0].endswith(f": write it, in '{place}'")
    assert not (place / "new.md").exists()

    write(cli, "--worktree", "fix")
    shutil.rmtree(place)
    gone = cli("undo", "--yes", "--dir", str(repository)).err
    assert gone.startswith(f"deepagents: the last task was done in '{place}', which is gone")
    assert "`deepagents sessions rewind SESSION` takes an earlier one back" in gone
