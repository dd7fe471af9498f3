"""A LangSmith sandbox is a sandbox like any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from langsmith.sandbox import Sandbox, SandboxConnectionError

from deepagents import create_deep_agent
from deepagents.backends import LangSmithSandbox
from deepagents.backends.sandbox import BaseSandbox
from deepagents.testing import ScriptedModel, call
from tests.backends.hosted import LocalSandbox
from tests.conftest import CallMode


@pytest.fixture
def local(tmp_path: Path) -> LocalSandbox:
    return LocalSandbox(tmp_path)


@pytest.fixture
def sandbox(local: LocalSandbox) -> LangSmithSandbox:
    return LangSmithSandbox(cast("Sandbox", local))


def test_it_is_named_after_the_sandbox(sandbox: LangSmithSandbox) -> None:
    assert sandbox.id == "box"
    assert isinstance(sandbox, BaseSandbox)
    assert sandbox.capabilities().capture


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("echo out", "out\n", 0),
        ("echo err >&2; exit 3", "err\n", 3),
        ("echo out; echo err >&2", "out\nerr\n", 0),
        ("true", "", 0),
    ],
)
def test_output_is_that_of_both_streams(
    command: str, output: str, code: int, sandbox: LangSmithSandbox, call_mode: CallMode
) -> None:
    ended = call_mode.call(sandbox, "execute", command)

    assert (ended.output, ended.exit_code) == (output, code)


def test_a_command_has_half_an_hour_unless_told_otherwise(
    sandbox: LangSmithSandbox, local: LocalSandbox, call_mode: CallMode
) -> None:
    for timeout in (None, 5, 0):
        call_mode.call(sandbox, "execute", "true", timeout=timeout)

    assert local.timeouts == [1800, 5, 0]


def test_a_command_that_takes_too_long_has_a_result(sandbox: LangSmithSandbox) -> None:
    ended = sandbox.execute("sleep 5", timeout=1)

    assert ended.exit_code == 124
    assert "timed out after 1 seconds" in ended.output


def test_each_file_has_an_answer_of_its_own(
    sandbox: LangSmithSandbox, tmp_path: Path, call_mode: CallMode
) -> None:
    file, folder = str(tmp_path / "a"), str(tmp_path / "d" / "b")

    sent = call_mode.call(
        sandbox, "upload_files", [(file, b"\0one"), (folder, b"two"), ("relative", b""), (str(tmp_path), b"")]
    )
    had = call_mode.call(sandbox, "download_files", [file, "relative", str(tmp_path), f"{file}-none"])

    assert [each.error for each in sent] == [None, None, "invalid_path", "is_directory"]
    assert [each.error for each in had] == [None, "invalid_path", "is_directory", "file_not_found"]
    assert had[0].content == b"\0one"


def test_an_agent_works_in_it(sandbox: LangSmithSandbox, tmp_path: Path, call_mode: CallMode) -> None:
    path = f"{tmp_path}/notes/a.md"
    model = ScriptedModel(
        call("write_file", file_path=path, content="one\r\ntwo\n"),
        call("edit_file", file_path=path, old_string="one", new_string="1"),
        call("grep", pattern="two", path=str(tmp_path)),
        call("read_file", file_path=path),
        call("execute", command=f"wc -l {path}"),
        "Done.",
    )

    result = call_mode.invoke(create_deep_agent(model, backend=sandbox), {"messages": "Write"})

    *_, found, read, counted = [each for each in result["messages"] if each.type == "tool"]
    assert "a.md" in found.text
    assert "1" in read.text
    assert "two" in read.text
    assert counted.text.startswith("2 ")
    assert Path(path).read_bytes() == b"1\r\ntwo\n"


def test_a_sandbox_that_is_gone_is_an_error_and_no_crash(
    sandbox: LangSmithSandbox, local: LocalSandbox, call_mode: CallMode
) -> None:
    local.is_gone = True
    model = ScriptedModel(call("execute", command="ls"), call("read_file", file_path="/a"), "It is gone.")

    result = call_mode.invoke(create_deep_agent(model, backend=sandbox), {"messages": "Look"})

    answers = [each for each in result["messages"] if each.type == "tool"]
    assert [each.status for each in answers] == ["error", "error"]
    assert [each.error for each in sandbox.upload_files([("/a", b"")])] == [
        "SandboxConnectionError: the sandbox could not do that."
    ]
    with pytest.raises(SandboxConnectionError):
        sandbox.execute("ls")


def test_importing_backends_imports_no_sandbox() -> None:
    code = "import deepagents.backends, sys; sys.exit('langsmith' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
