"""What git and this program obey in a directory is guarded by what is there, not by its name alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command

RUNS = '[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = "touch ran; false"\n'
SET_UPS = {
    "a repository of another name": ("git init -q --separate-git-dir .bare .", ".bare/config"),
    "hooks of another name": (
        "git init -q .; mkdir .husky; git config core.hooksPath .husky",
        ".husky/pre-commit",
    ),
    "settings that are included": ("git init -q .; git config include.path ../settings", "settings"),
    "no repository yet": ("true", "HEAD"),
    "a directory below": ("git init -q .; mkdir -p sub/objects sub/refs", "sub/HEAD"),
}


@needs_sandbox
@pytest.mark.parametrize("name", SET_UPS)
def test_what_git_obeys_is_not_changed_unasked(cli: Command, directory: Path, name: str) -> None:
    set_up, obeyed = SET_UPS[name]
    subprocess.run(["/bin/sh", "-c", set_up], cwd=directory, check=True)
    before = (directory / obeyed).read_bytes() if (directory / obeyed).exists() else None
    model = ScriptedModel(
        call("write_file", file_path=obeyed, content=RUNS),
        call("execute", command=f"cat > {obeyed} <<'END'\n{RUNS}END\ntrue"),
        call("write_file", file_path="src/plain.txt", content="x"),
        "Done.",
    )

    ended = cli.run("go", "--mode", "auto", model=model)

    assert "1 call was refused" in ended.err
    assert (directory / "src/plain.txt").exists()
    assert ((directory / obeyed).read_bytes() if (directory / obeyed).exists() else None) == before
    subprocess.run(["git", "status"], cwd=(directory / obeyed).parent, capture_output=True, check=False)
    assert not list(directory.rglob("ran"))


@needs_sandbox
def test_the_environment_that_runs_this_program_is_changed_by_no_command_and_no_tool(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(directory / "venv"))
    (directory / "venv/lib").mkdir(parents=True)
    model = ScriptedModel(
        call("write_file", file_path="venv/lib/deepagents.py", content="x"),
        call("execute", command="echo x > venv/lib/a.py; mv venv old"),
        "Done.",
    )

    cli.run("go", "--mode", "full", model=model)

    assert [each.name for each in (directory / "venv").rglob("*")] == ["lib"]


def test_a_commit_that_is_called_head_is_read_unasked(cli: Command, directory: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=directory, check=True)

    ended = cli.run(
        "go", "--mode", "auto", model=ScriptedModel(call("execute", command="git log origin/HEAD"), "Done.")
    )

    assert ended.code == 0
