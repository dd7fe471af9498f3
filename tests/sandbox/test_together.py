"""Commands that run at the same time: none undoes what protects another, and the file tools go on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from deepagents import FilesystemPermission, SubAgent, create_deep_agent
from deepagents.backends import LocalSandbox
from deepagents.testing import ScriptedModel, call
from tests.sandbox.users import UNAVAILABLE

pytestmark = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))
SECONDS = 30
PLANT = (
    "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo '[core] fsmonitor = evil' >> .git/config"
)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def until(name: str) -> str:
    return f"until test -e {name}; do sleep 0.01; done"


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was not made"
        time.sleep(0.01)


@pytest.mark.parametrize("session", [False, True])
def test_the_file_tools_write_beside_a_command_that_runs(work: Path, session: bool) -> None:
    with LocalSandbox(work, session=session) as sandbox:
        sandbox.start_command(f"touch runs; {until('over')}")
        wait_for(work / "runs")

        assert sandbox.write("top.txt", "old\n").error is None
        assert sandbox.edit("top.txt", "old", "new").error is None
        assert sandbox.upload_files([(f"{work}/more.txt", b"x")])[0].error is None
        assert sandbox.delete("more.txt").error is None
        assert sandbox.write(".envrc", "evil").error
    assert (work / "top.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    "make", ["git init -q .", "git init -q .; rm -rf .git/hooks; mkdir evil; ln -s ../evil .git/hooks"]
)
def test_a_repository_that_another_command_makes_has_no_hooks_afterwards(work: Path, make: str) -> None:
    with LocalSandbox(work) as sandbox:
        one = sandbox.start_command(f"{make}; touch made; {until('go')}")
        wait_for(work / "made")
        two = sandbox.start_command(f"touch runs; {until('over')}; {PLANT}")
        wait_for(work / "runs")
        (work / "go").touch()
        assert sandbox.poll_command(one, wait=SECONDS).exit_code == 0
        (work / "over").touch()
        assert sandbox.poll_command(two, wait=SECONDS).exit_code is not None

    assert not (work / ".git/hooks/pre-commit").exists()
    assert not (work / ".git/hooks").is_symlink()
    assert "fsmonitor" not in (work / ".git/config").read_text()


def test_placeholders_stay_until_the_last_command_ends(work: Path) -> None:
    with LocalSandbox(work) as sandbox:
        late = sandbox.start_command(f"touch runs; {until('over')}; echo evil > .envrc")
        wait_for(work / "runs")
        for _ in range(3):
            assert sandbox.execute("echo evil > .envrc").exit_code != 0
        (work / "over").touch()

        assert "cannot create" in sandbox.poll_command(late, wait=SECONDS).output
    assert sorted(each.name for each in work.iterdir()) == ["over", "runs"]


def test_an_agent_with_rules_cannot_use_the_shell_of_another_agent(work: Path) -> None:
    (work / "secret").mkdir()
    (work / "secret/key").write_text("canary-9b1e")
    order = f"cat {work}/secret/key; echo planted > {work}/secret/new\n"
    model = ScriptedModel(
        call("write_command", command_id="command-1", text=order),
        call("read_command", command_id="command-1", wait=1),
        call("stop_command", command_id="command-1"),
        "Nothing.",
    )
    helper: SubAgent = {
        "name": "helper",
        "description": "Helps.",
        "system_prompt": "Help.",
        "model": model,
        "permissions": [FilesystemPermission(["read", "write"], [f"{work}/secret/"], "deny")],
    }
    with LocalSandbox(work) as sandbox:
        main = ScriptedModel(
            call("execute", command="sh", background=True),
            call("task", description="Help", subagent_type="helper"),
            call("write_command", command_id="command-1", text="echo mine\n", close=True),
            call("read_command", command_id="command-1", wait=SECONDS),
            "Done.",
        )
        done: Any = create_deep_agent(main, backend=sandbox, subagents=[helper]).invoke({"messages": "Go"})

    answers = [each.text for each in model.asked[-1].messages if each.type == "tool"]
    assert len(answers) == 3
    assert all("this agent did not start 'command-1'" in each for each in answers)
    assert done["messages"][-2].text == "mine\n[It ended with exit code 0]"
    assert not (work / "secret/new").exists()
