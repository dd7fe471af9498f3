"""What an agent read, and the harness moved to files, is out of reach of agents under other rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

CODE = "xylophone"
SECRET = f"the launch code is {CODE}"
NO_SECRETS = [FilesystemPermission(["read", "write"], ["/secrets/**"], "deny")]
NO_PLANS = [FilesystemPermission(["read"], ["/plans/**"], "deny")]
THREAD: Any = {"configurable": {"thread_id": "1"}}
READ = [call("read_file", file_path="/secrets/plan.txt"), call("shout"), *[call("ls", path="/")] * 6]
SEARCH = [
    call("grep", pattern="launch code", output_mode="content"),
    call("grep", pattern="launch code", path="/conversation_history", output_mode="content"),
    call("grep", pattern="launch code", path="/large_tool_results", output_mode="content"),
    call("glob", pattern="**/*.md"),
    call("ls", path="/conversation_history"),
    call("read_file", file_path="/conversation_history/1.md"),
]


@pytest.fixture
def disk(tmp_path: Path) -> FilesystemBackend:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/plan.txt").write_text(SECRET)
    return FilesystemBackend(root_dir=tmp_path, virtual_mode=True)


def shout() -> str:
    """Return a long result that holds the secret."""
    return f"{SECRET}\n" * 10_000


def run(
    call_mode: CallMode, disk: FilesystemBackend, main: list[Any], child: list[Any], script: list[Any]
) -> tuple[ScriptedModel, ScriptedModel]:
    """Let an agent with rules `main` and a subagent with rules `child` go through a script."""
    delegate = call("task", description="Go", subagent_type="helper")
    parent, helper = [[*each] for each in script]
    parent = [delegate if each == "helper" else each for each in parent]
    model, other = ScriptedModel(*parent, "Done."), ScriptedModel(*helper, "Looked.")

    def compacting(of: ScriptedModel) -> SummarizationMiddleware:
        return SummarizationMiddleware(
            of, backend=disk, trigger=("messages", 8), keep=("messages", 2), summarizer=lambda _: "Summed up."
        )

    spec: Any = {
        "name": "helper",
        "description": "Helps",
        "system_prompt": "Help.",
        "model": other,
        "permissions": child,
    }
    agent = create_deep_agent(
        model,
        tools=[shout],
        backend=disk,
        permissions=main,
        middleware=[compacting(model)],
        subagents=[spec],
    )
    call_mode.invoke(agent, {"messages": "Go"}, THREAD)
    return model, other


def results(model: ScriptedModel) -> str:
    asked = model.asked[-1].messages
    return "\n".join(each.text for each in asked if each.type == "tool")


def test_a_stricter_subagent_does_not_find_what_its_parent_read(
    call_mode: CallMode, disk: FilesystemBackend
) -> None:
    model, helper = run(call_mode, disk, [], NO_SECRETS, [[*READ, "helper"], SEARCH])

    assert (disk.cwd / "conversation_history/1.md").exists()
    assert CODE in "".join(each.text for asked in model.asked for each in asked.messages)
    assert CODE not in results(helper)
    assert "permission_denied" in results(helper)


def test_a_stricter_parent_does_not_find_what_its_subagent_read(
    call_mode: CallMode, disk: FilesystemBackend
) -> None:
    model, helper = run(call_mode, disk, NO_SECRETS, NO_PLANS, [["helper", *SEARCH], READ])

    assert list(disk.cwd.glob("conversation_history/rules-*/large_tool_results/*"))
    assert CODE in "".join(each.text for asked in helper.asked for each in asked.messages)
    assert CODE not in results(model)


def test_agents_under_the_same_rules_share_what_moved_to_files(
    call_mode: CallMode, disk: FilesystemBackend
) -> None:
    search = call("grep", pattern="launch code", path="/large_tool_results", output_mode="count")
    model, _ = run(call_mode, disk, NO_SECRETS, NO_SECRETS, [["helper", search], [call("shout")]])

    assert ": 1000\n" in results(model)


def test_an_agent_under_rules_of_its_own_reads_its_own(call_mode: CallMode, disk: FilesystemBackend) -> None:
    search = call("grep", pattern="launch code", path="/conversation_history", output_mode="count")
    _, helper = run(call_mode, disk, [], NO_PLANS, [["helper"], [call("shout"), search]])

    assert ": 1000\n" in results(helper)
