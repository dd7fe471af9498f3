"""One place decides about calls: with the rules that are kept, and in the same way when a run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents.events import ApprovalRequest
from deepagents.testing import ScriptedModel, call
from deepagents_cli.agents import make_agent, make_files
from deepagents_cli.policy import Policy
from deepagents_cli.settings import Permission
from deepagents_cli.settings_file import add_permission
from tests.cli.conftest import Command as Cli
from tests.cli.conftest import Nursery
from tests.cli.scenarios import writes_two_files
from tests.cli.test_approval import QUESTION


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
    for answer, then in (("a", "Always what"), ("2", "Where")):
        child.type(answer)
        child.wait_for(then)
    child.type("d")

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
