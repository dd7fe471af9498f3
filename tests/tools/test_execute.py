"""execute: a command, its output and its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.backends.protocol import ExecuteResponse, SandboxBackendProtocol
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.tools.bench import code_of


@pytest.fixture
def shell(tmp_path: Path, call_mode: CallMode) -> Any:
    def run(**arguments: Any) -> ToolMessage:
        backend = LocalShellBackend(root_dir=tmp_path)
        middleware = [FilesystemMiddleware(backend=backend, max_execute_timeout=60)]
        with ScriptedModel(call("execute", **arguments), "Done.") as model:
            agent = create_deep_agent(model, backend=backend, middleware=middleware)
            return call_mode.invoke(agent, {"messages": "Go"})["messages"][-2]

    return run


def test_output_and_exit_code(shell: Any) -> None:
    done = shell(command="echo hello")

    assert done.text == "hello\n[Command succeeded with exit code 0]"
    assert done.artifact == {"exit_code": 0, "truncated": False}


def test_a_failing_command_is_a_result_and_no_error_of_the_tool(shell: Any) -> None:
    done = shell(command="echo no >&2; exit 3")

    assert done.status == "success"
    assert "[stderr] no" in done.text
    assert done.text.endswith("Exit code: 3")
    assert done.text.count("3") == 1


def test_a_command_that_takes_too_long_is_ended(shell: Any) -> None:
    assert shell(command="sleep 30", timeout=1).artifact["exit_code"] == 124


@pytest.mark.parametrize(("timeout", "said"), [(-1, "non-negative"), (61, "exceeds maximum allowed")])
def test_a_bad_time_out_is_refused(shell: Any, timeout: int, said: str) -> None:
    refused = shell(command="true", timeout=timeout)

    assert code_of(refused) == "invalid_argument"
    assert said in refused.text


def test_without_a_shell_the_call_is_refused() -> None:
    with ScriptedModel(call("execute", command="ls"), "Done.") as model:
        refused = create_deep_agent(model).invoke({"messages": "Go"})["messages"][-2]

    assert code_of(refused) == "not_supported"


class Terse(SandboxBackendProtocol):
    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return ExecuteResponse(command, 3)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("no", "no\n[Command failed with exit code 3]"),
        ("Exit code: 3", "Exit code: 3"),
        ("no\nExit code: 3 (for a reason)\n", "no\nExit code: 3 (for a reason)\n"),
        ("Exit code: 34", "Exit code: 34\n[Command failed with exit code 3]"),
        ("Exit code: 3\nmore", "Exit code: 3\nmore\n[Command failed with exit code 3]"),
    ],
)
def test_the_exit_code_is_said_once(call_mode: CallMode, output: str, said: str) -> None:
    with ScriptedModel(call("execute", command=output), "Done.") as model:
        agent = create_deep_agent(model, backend=Terse())
        done = call_mode.invoke(agent, {"messages": "Go"})["messages"][-2]

    assert done.text == said
    assert done.artifact["exit_code"] == 3
