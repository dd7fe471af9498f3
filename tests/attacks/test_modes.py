"""No call gets at `.git/` or at secrets unasked, in any mode but full, whoever makes it and however named."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends import LocalSandbox
from deepagents.events import ApprovalRequest
from deepagents.testing import ScriptedModel, call
from deepagents_cli.__main__ import main
from deepagents_cli.approval.backends import GuardedSandbox
from deepagents_cli.approval.policy import Policy
from deepagents_cli.approval.rules import Permission
from deepagents_cli.project.settings_file import add_permission
from deepagents_cli.session.agent.agents import make_sandbox

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(LocalSandbox.available() is not None, reason=str(LocalSandbox.available()))
KEY = "hunter2-of-this-test"
CONFIG = "sed -i s/core/user/ .git/config"
MODES = (
    ["--mode", "ask", "--yes"],
    ["--mode", "auto"],
    ["--mode", "auto", "--yes"],
    ["--mode", "plan", "--yes"],
)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a secret and links to what is guarded; nobody sits at a terminal."""
    monkeypatch.setenv("DEEPAGENTS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DEEPAGENTS_SETTINGS", str(tmp_path / "settings.toml"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    place = tmp_path / "files"
    (place / ".git/hooks").mkdir(parents=True)
    (place / ".git/hooks/old").write_text("old\n")
    (place / ".git/index").write_text("index\n")
    (place / ".env").write_text(f"KEY={KEY}\n")
    (place / "a.txt").write_text("text\n")
    (place / "plain").symlink_to(".env")
    (place / "tools").symlink_to(".git")
    return place


def attack(directory: Path, options: list[str], *made: Any) -> tuple[int, str]:
    """Let an agent make calls; return the exit code and all that it read."""
    model = ScriptedModel(*made, "Done.")
    code = main(["run", "go", "--dir", str(directory), *options], model=model)
    # A run that ends early makes no attack.
    assert len(model.asked) > len(made)
    return code, "\n".join(message.text for each in model.asked for message in each.messages)


def tree(directory: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in (directory / ".git").rglob("*") if each.is_file()}


def decision_of(policy: Policy, command: str) -> str:
    return policy.judge(ApprovalRequest("1", "execute", {"command": command}, tool_call_id=command)).kind


WRITES = [
    call("write_file", file_path=".git/hooks/pre-commit", content="evil"),
    call("write_file", file_path=".GIT/hooks/pre-commit", content="evil"),
    call("write_file", file_path="tools/hooks/pre-commit", content="evil"),
    call("write_file", file_path="a/../.git/index", content="evil"),
    call("write_file", file_path="sub/.git/hooks/x", content="evil"),
    call("edit_file", file_path=".git/index", old_string="index", new_string="evil"),
    call("edit_file", file_path="tools/hooks/old", old_string="old", new_string="evil"),
    call("delete", file_path=".git/hooks/old"),
    call("delete", file_path=".git"),
    call("delete", file_path="tools/index"),
]


READS = [
    call("read_file", file_path=".env"),
    call("read_file", file_path="plain"),
    call("grep", pattern="KEY", output_mode="content"),
    call("grep", pattern="KEY", path=".env", output_mode="content"),
    call("edit_file", file_path=".env", old_string="KEY=wrong", new_string="x"),
    call("edit_file", file_path="plain", old_string="KEY=", new_string="x"),
    call("write_file", file_path=".env", content="x"),
]


@pytest.mark.parametrize("mode", [*MODES, ["--mode", "auto", "--yes", "--shell"]], ids=" ".join)
def test_no_secret_is_read_or_changed_and_nothing_of_git_changes(directory: Path, mode: list[str]) -> None:
    before = tree(directory)

    code, read = attack(directory, mode, *READS, *WRITES)

    assert KEY not in read
    assert (directory / ".env").read_text() == f"KEY={KEY}\n"
    assert tree(directory) == before
    assert not (directory / "sub").exists()
    assert not (directory / ".GIT").exists()
    assert code == 3


def test_a_search_says_in_few_words_what_it_left_out(directory: Path) -> None:
    _, read = attack(directory, ["--mode", "auto"], READS[2])

    (line,) = [each for each in read.splitlines() if "left out" in each]
    assert ".env" in line
    assert len(line) < 500


def test_a_subagent_has_no_more_rights(directory: Path) -> None:
    task = call("task", description="read it", subagent_type="general-purpose")

    code, read = attack(directory, ["--mode", "auto", "--yes"], task, READS[0], WRITES[5], "Tried.")

    assert KEY not in read
    assert "evil" not in (directory / ".git/index").read_text()
    assert code == 3


LOOKING = [
    "cat .env plain",
    "cat .e*",
    "cat .e''nv",
    "n=.en; cat ${n}v",
    "grep -r KEY .",
    "find . -type f -exec cat {} +",
    "python3 -c 'print(open(chr(46)+\"env\").read())'",
    "mv .e* b; cat b; ln .e* c; cat c; cp .e* d; cat d",
    "tar c . | cat",
]


CHANGING = [
    "echo evil > .g*/index",
    "echo evil > tools/index",
    "g=.gi; rm -rf ${g}t",
    "mv .g* x",
    "rm tools/index",
    "git config core.fsmonitor evil",
    "c=conf; git ${c}ig core.fsmonitor evil",
    "echo 'git config .git/hooks'; echo evil > .git/hooks/pre-commit",
    "ln -s .g*/hooks h; echo evil > h/pre-commit",
    "ln -s . here; echo evil > here/.g*/config; echo evil > here/.git/hooks/old",
]


@needs_sandbox
@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_no_command_reads_a_secret_or_changes_git_unasked(directory: Path, mode: list[str]) -> None:
    before = tree(directory)

    _, read = attack(directory, mode, *(call("execute", command=each) for each in LOOKING + CHANGING))

    assert f"={KEY}" not in read
    assert tree(directory) == before


@needs_sandbox
@pytest.mark.parametrize("named", [".env", ".git/config", "git config"])
def test_what_a_model_writes_gives_a_hook_no_rights(directory: Path, tmp_path: Path, named: str) -> None:
    (tmp_path / "settings.toml").write_text("hooks.after_tool = ['make -s format 2>&1']")
    before = tree(directory)
    makefile = "format:\n\tcat .e*v; echo evil > .git/config; echo evil > .git/hooks/pre-commit; exit 2\n"
    write = call("write_file", file_path="Makefile", content=f"# {named} x\n{makefile}")

    _, read = attack(directory, ["--mode", "auto"], write)

    assert "A hook of this project says" in read
    assert KEY not in read
    assert tree(directory) == before


@needs_sandbox
def test_a_command_that_lies_in_wait_gains_nothing_by_what_another_one_was_allowed(directory: Path) -> None:
    (directory / ".git/config").write_text("[core]\n")
    policy = Policy(make_sandbox(directory), directory, "auto")
    lurks = "while :; do echo evil >> .g*/config; echo x > .g*/hooks/x; done 2>/dev/null"
    assert decision_of(policy, lurks) == "allow"
    assert decision_of(policy, CONFIG) == "ask"
    assert isinstance(sandbox := policy.backend, GuardedSandbox)
    sandbox.access_of = policy.access_of

    with sandbox:
        sandbox.start_command(lurks)
        assert sandbox.execute(CONFIG).exit_code == 0
        assert (directory / ".git/config").read_text() == "[user]\n"
        sandbox.execute("sleep 0.3")

    assert (directory / ".git/config").read_text() == "[user]\n"
    assert not (directory / ".git/hooks/x").exists()


@needs_sandbox
def test_a_rule_about_how_commands_begin_covers_no_settings_of_git(directory: Path, tmp_path: Path) -> None:
    (directory / ".git/config").write_text("[core]\n")
    add_permission(tmp_path / "settings.toml", Permission("commands: git config"))
    add_permission(tmp_path / "settings.toml", Permission("commands: cp"))
    made = ["git config core.fsmonitor evil", "cp a.txt .git/hooks/pre-commit"]

    code, _ = attack(directory, ["--mode", "auto"], *(call("execute", command=each) for each in made))

    assert code == 3
    assert (directory / ".git/config").read_text() == "[core]\n"
    assert not (directory / ".git/hooks/pre-commit").exists()


@needs_sandbox
def test_in_plan_mode_no_command_changes_anything(directory: Path) -> None:
    made = [call("execute", command=each) for each in ("touch new", "rm a.txt", "echo x > a.txt; cat a.txt")]

    code, read = attack(directory, ["--mode", "plan"], *made)

    assert code == 0
    assert sorted(each.name for each in directory.iterdir()) == [".env", ".git", "a.txt", "plain", "tools"]
    assert (directory / "a.txt").read_text() == "text\n"
    assert "Read-only file system" in read


def test_in_plan_mode_a_command_without_the_sandbox_or_with_a_network_is_refused(directory: Path) -> None:
    for options in (["--shell"], ["--network", "all"]):
        _, read = attack(
            directory, ["--mode", "plan", "--yes", *options], call("execute", command="touch new")
        )
        assert "Plan mode" in read
        assert not (directory / "new").exists()


@needs_sandbox
def test_full_lets_everything_through(directory: Path) -> None:
    code, read = attack(
        directory, ["--mode", "full"], READS[0], READS[2], WRITES[0], call("execute", command="cat .e*")
    )

    assert code == 0
    assert read.count(f"={KEY}") >= 3
    assert (directory / ".git/hooks/pre-commit").read_text() == "evil"


def test_an_edit_that_cannot_be_made_is_not_asked_about_but_refused_in_the_words_of_the_tool(
    directory: Path,
) -> None:
    edit = call("edit_file", file_path="a.txt", old_string="absent", new_string="x")

    code, read = attack(directory, [], edit)

    assert code == 0
    assert "[no_match]" in read
    assert "rejected" not in read
