"""One place decides about calls: with the rules that are kept, and in the same way when a run goes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents.events import ApprovalRequest
from deepagents.testing import ScriptedModel, call
from deepagents_cli.approval.policy import Policy
from deepagents_cli.approval.questions import make_question
from deepagents_cli.approval.rules import Permission
from deepagents_cli.project.settings_file import add_permission
from deepagents_cli.session.agent.agents import make_agent, make_files, make_sandbox
from deepagents_cli.values import Mode
from tests.cli.approval.test_approval import QUESTION
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command as Cli
from tests.cli.conftest import Nursery
from tests.cli.scenarios import writes_two_files


@pytest.mark.parametrize(
    ("command", "options", "code"), [("touch a", (), 0), ("touch a", ("--shell",), 3), ("touch ./a", (), 3)]
)
def test_a_kept_command_is_that_of_the_sandbox_and_names_nothing_of_a_directory(
    cli: Cli, tmp_path: Path, command: str, options: tuple[str, ...], code: int
) -> None:
    add_permission(tmp_path / "settings.toml", Permission(f"command: {command}"))

    assert (
        cli.run("go", *options, model=ScriptedModel(call("execute", command=command), "Done.")).code == code
    )


def test_a_kept_rule_holds_in_its_directory_alone(cli: Cli, directory: Path, tmp_path: Path) -> None:
    def ended(where: Path) -> int:
        (tmp_path / "settings.toml").unlink(missing_ok=True)
        add_permission(tmp_path / "settings.toml", Permission(f"edits: {directory}", where))
        model = ScriptedModel(call("write_file", file_path="a.md", content="x"), "Done.")
        return cli.run("go", model=model).code

    assert ended(directory) == 0
    assert ended(tmp_path / "other") == 3


def test_a_project_grants_itself_nothing(cli: Cli, directory: Path) -> None:
    (directory / ".deepagents").mkdir()
    add_permission(directory / ".deepagents/settings.toml", Permission(f"edits: {directory}"))
    model = ScriptedModel(call("write_file", file_path="a.md", content="x"), "Done.")

    assert cli.run("go", model=model).code == 3


def test_a_rule_of_this_directory_is_kept_in_the_file_of_the_person(
    nursery: Nursery, directory: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.toml"
    child = nursery.at_terminal(writes_two_files, "write", DEEPAGENTS_SETTINGS=str(settings))
    child.wait_for(QUESTION)
    for answer, then in (("a", "Always allow what"), ("2", "For how long")):
        child.type(answer)
        child.wait_for(then)
    child.type("2")

    assert child.end() == 0
    assert f'rule = "edits: {directory}"' in settings.read_text()
    assert f'directory = "{directory}"' in settings.read_text()


def test_a_rejected_call_does_not_run_though_a_later_mode_would_let_it(
    directory: Path,
) -> None:
    saver, thread = InMemorySaver(), RunnableConfig(configurable={"thread_id": "1"})
    write = call("write_file", file_path="/a.md", content="x")
    first = Policy(make_files(directory), directory)
    waiting = make_agent(ScriptedModel(write), saver, first).invoke({"messages": "go"}, thread)
    (needed,) = waiting["__interrupt__"]

    later = Policy(make_files(directory), directory, "auto")
    agent = make_agent(ScriptedModel("It was refused."), saver, later)
    request = needed.value["action_requests"][0]
    later.judge(ApprovalRequest(needed.id, request["name"], request["args"], "", (), request["tool_call_id"]))
    agent.invoke(Command(resume={"decisions": [{"type": "reject"}]}), thread)

    assert [each.name for each in directory.iterdir()] == ["notes.md"]


def test_what_was_asked_about_once_stays_so(directory: Path) -> None:
    policy = Policy(make_files(directory), directory)
    asked = ApprovalRequest("1", "write_file", {"file_path": "/a.md", "content": "x"}, tool_call_id="c1")
    assert policy.judge(asked).kind == "ask"

    policy.mode = "full"

    class Request:
        tool_call = {"id": "c1", "name": "write_file", "args": asked.args}
        state: dict[str, Any] = {}

    assert policy.asks(Request())
    assert policy.judge(asked).kind == "allow"


@pytest.fixture
def repository(directory: Path) -> Path:
    subprocess.run(["git", "init", "--quiet"], cwd=directory, check=True)
    (directory / "hook").write_text("exit 0\n")
    (directory / ".env").write_text("KEY=1\n")
    return directory


@needs_sandbox
@pytest.mark.parametrize(
    ("command", "done"),
    [
        ("git config user.name x", ("config", "name = x")),
        ("git remote add origin https://example.org/x", ("config", "example.org")),
        ("git -c user.name=x -c user.email=x@y commit --quiet --allow-empty -m first", ("HEAD", "ref")),
        (
            "git config push.default simple && git lfs install 2>/dev/null; true",
            ("config", "default = simple"),
        ),
        ("cp hook .git/hooks/pre-commit", ("hooks/pre-commit", "exit 0")),
        ("mkdir -p .vscode && echo yes > .vscode/settings.json", ("../.vscode/settings.json", "yes")),
        ("echo yes > .envrc; cat .env > .mcp.json", ("../.mcp.json", "KEY=1")),
        ("rm -rf .git && cp hook .git", ("", "exit 0")),
    ],
)
def test_what_is_asked_about_and_approved_is_done(
    repository: Path, command: str, done: tuple[str, str]
) -> None:
    sandbox = make_sandbox(repository)
    policy = Policy(sandbox, repository, "auto")
    sandbox.access_of = policy.access_of

    assert policy.judge(about("execute", command=command)).kind == "ask"
    ended = sandbox.execute(command)

    assert ended.exit_code == 0, ended.output
    assert done[1] in (repository / ".git" / done[0]).read_text()


@needs_sandbox
def test_an_approved_checkout_brings_all_files_of_its_branch(repository: Path) -> None:
    def git(*words: str) -> None:
        named = ("-c", "user.name=x", "-c", "user.email=x@y")
        subprocess.run(["git", *named, *words], cwd=repository, check=True, capture_output=True)

    git("commit", "--allow-empty", "-m", "first")
    git("checkout", "-b", "other")
    (repository / ".devcontainer").mkdir()
    (repository / ".devcontainer/devcontainer.json").write_text("{}")
    git("add", ".devcontainer")
    git("commit", "-m", "second")
    git("checkout", "-")
    sandbox = make_sandbox(repository)
    policy = Policy(sandbox, repository, "auto")
    sandbox.access_of = policy.access_of

    assert policy.judge(about("execute", command="git checkout other")).kind == "ask"
    ended = sandbox.execute("git checkout other")

    assert ended.exit_code == 0, ended.output
    assert (repository / ".devcontainer/devcontainer.json").exists(), ended.output


@needs_sandbox
@pytest.mark.parametrize(("started", "mode"), [("sh # .env", "auto"), ("sh", "full")])
def test_what_is_typed_into_a_freer_command_is_asked_about(
    repository: Path, started: str, mode: Mode
) -> None:
    with make_sandbox(repository) as sandbox:
        policy = Policy(sandbox, repository, mode)
        sandbox.access_of = policy.access_of
        policy.judge(about("execute", command=started, background=True))
        freer = sandbox.start_command(started)
        policy.mode = "auto"
        policy.judge(about("execute", command="sh -s", background=True))
        plain = sandbox.start_command("sh -s")

        def judge(command_id: str) -> str:
            typed = about("write_command", command_id=command_id, text="cat .e*\n")
            if command_id == freer:
                assert make_question(typed, policy).details == [
                    f"$ {freer}",
                    "$ cat .e*",
                    f"# into: {started}",
                ]
            return policy.judge(typed).kind

        assert (judge(freer), judge(plain)) == ("ask", "allow")


@needs_sandbox
def test_in_plan_mode_nothing_of_git_is_asked_about_since_it_cannot_change(repository: Path) -> None:
    policy = Policy(make_sandbox(repository), repository, "plan")

    for command in ("git config user.name x", "cat .git/HEAD", "rm -rf .git .vscode"):
        assert policy.judge(about("execute", command=command)).kind == "allow"
        assert not policy.access_of(command).unprotected
    assert policy.judge(about("execute", command="cat .env")).kind == "ask"


@needs_sandbox
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("write_file", {"file_path": "../new", "content": "x"}, "is not a path here"),
        ("write_file", {"file_path": "{outside}/new", "content": "x"}, "outside of the sandbox"),
        ("write_file", {"file_path": "{given}/new", "content": "x"}, "was given to be read"),
        ("edit_file", {"file_path": "{given}/a", "old_string": "a", "new_string": "b"}, "given to be read"),
        ("write_file", {"file_path": "hook/new", "content": "x"}, "Not a directory"),
        ("write_file", {"file_path": ".git", "content": "x"}, "it is a directory"),
        ("edit_file", {"file_path": "large", "old_string": "a", "new_string": "b"}, "over the limit"),
        ("delete", {"file_path": "{given}/a"}, "was given to be read"),
        ("delete", {"file_path": "{outside}/a"}, "outside of the sandbox"),
        ("delete", {"file_path": "."}, "is not deleted"),
        ("delete", {"file_path": "link/a"}, "a link leads out"),
        ("read_file", {"file_path": "{outside}/.env"}, "outside of the sandbox"),
        ("read_file", {"file_path": "key.pem"}, "not found"),
        ("write_command", {"command_id": "command-9", "text": "x"}, "command-9"),
        ("execute", {"command": "nosuch --all"}, "there is no program 'nosuch' for commands ["),
        ("execute", {"command": "elsewhere"}, "outside/elsewhere is not in the sandbox (--read"),
    ],
)
def test_what_cannot_be_done_is_refused_and_not_asked_about(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    arguments: dict[str, str],
    said: str,
) -> None:
    places = {each: tmp_path / each for each in ("outside", "given")}
    for place in places.values():
        place.mkdir()
        (place / "a").write_text("a\n")
        (place / "elsewhere").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{places['outside']}:{os.environ['PATH']}")
    (repository / "link").symlink_to(places["outside"])
    with (repository / "large").open("wb") as file:
        file.truncate(11 << 20)
    filled = {key: value.format(**places) for key, value in arguments.items()}
    policy = Policy(make_sandbox(repository, read=[places["given"]]), repository)

    verdict = policy.judge(about(name, **filled))

    assert verdict.kind == "refuse"
    assert said in verdict.reason


@needs_sandbox
@pytest.mark.parametrize(
    "command", ["cd src", "A=1 cat hook", "nosuch || cat hook", "~/x", "./made-by-the-call-before"]
)
def test_what_a_shell_can_run_is_asked_about(repository: Path, command: str) -> None:
    policy = Policy(make_sandbox(repository), repository)

    assert policy.judge(about("execute", command=command)).kind == "ask"


@needs_sandbox
def test_a_question_says_what_the_sandbox_keeps_from_a_command(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x\n")
    command = f"cat {tmp_path}/notes hook /etc/os-release; curl https://example.org"
    policy = Policy(make_sandbox(repository), repository, offline=True)

    question = make_question(about("execute", command=command), policy)

    assert question.details[1:] == [
        f"# not there for it: {tmp_path}/notes (--read DIR would give it)",
        "# there is no network for it (--network HOST would give it)",
    ]
    assert make_question(about("execute", command="cat hook; git status"), policy).details == [
        "$ cat hook; git status"
    ]


def test_a_question_says_how_long_a_command_may_go_on(directory: Path) -> None:
    asked = about("execute", command="sh", background=True, timeout=86400)

    title = make_question(asked, Policy(make_files(directory), directory)).title

    assert title == "wants to run a command without the sandbox, in the background, for up to 86400 seconds"


def test_a_question_shows_bytes_that_are_no_text_and_what_becomes_of_them(directory: Path) -> None:
    (directory / "notes.md").write_bytes(b"caf\xe9\n")
    asked = about("write_file", file_path="/notes.md", content="caf\ufffd\n")

    details = make_question(asked, Policy(make_files(directory), directory)).details

    assert details[-2:] == ["-caf\\udce9", "+caf\ufffd"]


def about(name: str, **arguments: Any) -> ApprovalRequest:
    return ApprovalRequest("1", name, arguments, tool_call_id=name)
