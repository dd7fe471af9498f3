"""Names that look like secrets, and what belongs to git, are known; others are not held up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.backends.capabilities import Capabilities
from deepagents.testing import ScriptedModel, call
from deepagents_cli.approval.guarded import file_rules, find_protected, kind_of, needs_of
from deepagents_sandbox import PROTECTED


@pytest.mark.parametrize(
    "path",
    [
        "/.env", "/a/.env.local", "/prod.env", "/.ENV", "/k/id_rsa", "/k/id_ed25519_work", "/a/server.pem",
        "/a/b.key", "/x.kdbx", "/.netrc", "/.npmrc", "/.pypirc", "/.git-credentials", "/.aws/credentials",
        "/.ssh/mine", "/credentials.json", "/secrets.yaml", "/.kube/config", "/main.tfstate",
        "/.bash_history",
    ],
)  # fmt: skip
def test_a_secret_is_known_by_its_name(path: str) -> None:
    assert kind_of(path, writes=False) == "secrets"
    assert kind_of(path, writes=True) == "secrets"


@pytest.mark.parametrize(
    "path",
    [
        "/.env.example", "/.env.sample", "/.env.template", "/example.env", "/k/id_rsa.pub", "/src/token.py",
        "/environment.md", "/id_map.py", "/secrets.py", "/tokenizer.json", "/.gitignore", "/a.git",
        "/node_modules/x/test.pem", "/lib/site-packages/certifi/cacert.pem",
    ],
)  # fmt: skip
def test_other_names_are_not_held_up(path: str) -> None:
    assert kind_of(path, writes=True) is None


@pytest.mark.parametrize("path", ["/.git", "/.git/hooks/x", "/a/.GIT/config", "/.git/x.pub"])
def test_what_belongs_to_git_may_be_read(path: str) -> None:
    assert kind_of(path, writes=True) == "git"
    assert kind_of(path, writes=False) is None


PROGRAMS = [
    ".git/hooks/x", ".VSCode/tasks.json", ".idea/a/b", ".zed/tasks.json", ".devcontainer/devcontainer.json",
    "sub/x.code-workspace", ".claude/settings.local.json", ".cursor/mcp.json", ".deepagents/settings.toml",
    ".codex/config.toml", ".gemini/settings.json",
]  # fmt: skip


@pytest.mark.parametrize("name", [*PROTECTED, *PROGRAMS])
def test_what_the_sandbox_keeps_from_commands_is_guarded(name: str) -> None:
    assert kind_of(f"/here/{name}", writes=True) is not None


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        ("make test", set[str]()),
        ("git status; git log -p", set[str]()),
        ("echo token", set[str]()),
        ("cat /elsewhere/.env", set[str]()),
        ("cat .env", {"secrets"}),
        ("cat /here/.env", {"secrets"}),
        ("x=./credentials; cat $x", {"secrets"}),
        ("git commit -m x", {"git"}),
        ("cd a && /usr/bin/git -C b push", {"git"}),
        ("cp x .git/hooks/y; cat 'k.pem'", {"git", "programs", "secrets"}),
        ("git -C sub log; git -c core.pager=cat diff", set[str]()),
        ("git -c user.name=x commit -m 'config'", {"git"}),
        ("ls sub/.vscode", {"programs"}),
    ],
)
def test_a_command_needs_what_it_names(command: str, needs: set[str]) -> None:
    assert needs_of(command, ["/here"]) == needs


CONFIGURATION = {".git/config", ".git/config.worktree"}


@pytest.mark.parametrize(
    ("command", "freed"),
    [
        ("git status; make", set[str]()),
        ("git commit -m 'git: config'", set[str]()),
        ("git log; tar -t -u x", set[str]()),
        ("cat /elsewhere/.git/config", set[str]()),
        ("git config user.name x", CONFIGURATION),
        ("cd a && /usr/bin/git -C b -c x.y=z remote add origin ..", CONFIGURATION),
        ("sh -c 'git push -u origin main'", CONFIGURATION),
        ("git lfs install", {*CONFIGURATION, ".git/hooks"}),
        ("cp hook ./.git/HOOKS/pre-commit", {".git/hooks"}),
        ("rm -rf /here/.git/", {each for each in PROTECTED if each.startswith(".git/")}),
        ("touch .vscode/a .envrc", {".vscode", ".envrc"}),
    ],
)
def test_a_command_is_freed_of_what_it_names(command: str, freed: set[str]) -> None:
    assert find_protected(command, ["/here"]) == freed


@pytest.mark.slow
def test_a_long_command_is_looked_at_in_no_time() -> None:
    for piece in ("git ", "git -C ", "git;", ".git/ "):
        begun = process_time()
        find_protected(piece * 20_000, ["/here"])
        assert process_time() - begun < 3


class Asked(FilesystemBackend):
    """Counts how often it is asked what it can do."""

    count = 0

    def capabilities(self, path: str = "/") -> Capabilities:
        self.count += 1
        return replace(super().capabilities(path), execute=True, exposed=False)


def test_many_names_cost_a_step_no_more_questions_than_one(directory: Path) -> None:
    def ask(rules: Sequence[FilesystemPermission]) -> int:
        backend = Asked(directory)
        model = ScriptedModel(call("ls", path="/"), "Done.")
        saver = InMemorySaver()
        agent = create_deep_agent(model, backend=backend, permissions=[*rules], checkpointer=saver)
        backend.count = 0
        agent.invoke({"messages": [("user", "look")]}, {"configurable": {"thread_id": "1"}})
        return backend.count

    assert ask(file_rules()) < 2 * ask([FilesystemPermission(["write"], ["/**/x"], "interrupt")])
