"""The MCP servers of a conversation: trusted, listed, asked about, and back after they died."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from deepagents.events import ToolFinished
from deepagents_cli.protocol import Ask, Notice, Ready, Trust, Trusted
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import MODEL, OpenAIServer, call
from tests.cli.session.conftest import StartWorker, Worker
from tests.mcp.servers import CROOKED, crooked, tool

pytestmark = pytest.mark.slow


def bring(directory: Path, **entries: Any) -> None:
    (directory / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))


def running(mark: str) -> list[bytes]:
    """Return the command lines of processes of servers that have this text in them."""
    found: list[bytes] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(each.read_bytes())
    return [each for each in found if b"crooked.py" in each and mark.encode() in each]


def open_trusted(worker: Worker, **given: Any) -> Ready:
    worker.begin(model=f"local-server:{MODEL}", **given)
    worker.wait(Trust)
    worker.send(Trusted(True))
    return worker.wait(Ready)


def test_a_project_s_servers_are_started_once_it_is_trusted(
    start: StartWorker, server: OpenAIServer, directory: Path
) -> None:
    bring(directory, files=crooked("read", call="pid"), db=crooked("find", start="exit"))
    distrusting = start()
    distrusting.begin(model=f"local-server:{MODEL}")
    shown = distrusting.wait(Trust)
    assert [each.split(": ")[0] for each in shown.items] == ["server files", "server db"]
    distrusting.send(Trusted(False))
    assert "1 server" not in (notice := " ".join(distrusting.wait(Ready).notices))
    assert "not used until you trust this directory: 2 servers" in notice
    assert "There are no MCP servers here" in distrusting.command("mcp").text
    assert distrusting.end() == 0

    worker = start()
    open_trusted(worker)
    said = worker.wait(Notice).text
    assert said.startswith("the MCP server 'db' is not there: its process ended with status 3")
    listed = worker.command("mcp").text.splitlines()
    assert listed[0] == f"- **files** 1 tool (`{directory}/.mcp.json`)"
    assert listed[1].startswith("- **db** is not there: its process ended with status 3")
    assert "- `mcp__files__read` asks: A tool." in worker.command("mcp", "files").text
    assert worker.command("mcp", "none").error == "There is no MCP server 'none'; /mcp lists them."


def test_always_is_about_a_tool_or_a_server_and_kept_for_the_directory_that_brings_it(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    bring(directory, files=crooked("read", "write"))
    server.then(call("mcp__files__read", path="a"), call("mcp__files__write", path="a"), "Done.")
    open_trusted(worker)
    worker.say("Go.")
    asked = worker.wait(Ask)
    assert asked.title == "wants to call mcp__files__read"
    assert asked.rules == {
        "tool: mcp__files__read": "`mcp__files__read`, with any arguments",
        "tools: mcp__files__*": "all tools of the MCP server `files`",
    }
    worker.decide(asked, "approve", rule="tools: mcp__files__*", scope="everywhere")

    assert worker.answer() == "Done."
    assert len(worker.all(Ask)) == 1
    kept = (tmp_path / "settings.toml").read_text()
    assert f'rule = "tools: mcp__files__*"\ndirectory = "{directory}"' in kept


def test_a_server_of_the_person_is_let_through_everywhere(
    worker: Worker, server: OpenAIServer, tmp_path: Path
) -> None:
    entry = crooked("read")
    (tmp_path / "settings.toml").write_text(
        f"[servers.files]\ncommand = {json.dumps(entry['command'])}\nargs = {json.dumps(entry['args'])}\n"
        '[[permissions]]\nrule = "tools: mcp__files__*"\n'
    )
    server.then(call("mcp__files__read", path="a"), "Done.")
    worker.open()
    worker.say("Go.")

    assert worker.answer() == "Done."
    assert not worker.all(Ask)


def test_a_rule_for_everywhere_is_not_for_a_server_of_that_name_which_a_project_brings(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "settings.toml").write_text('[[permissions]]\nrule = "tools: mcp__files__*"\n')
    bring(directory, files=crooked("read"))
    server.then(call("mcp__files__read", path="a"))
    open_trusted(worker)
    worker.say("Go.")

    assert worker.wait(Ask).title == "wants to call mcp__files__read"


@needs_sandbox
def test_a_confined_server_finds_the_directory_and_nothing_else(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "settings.toml").write_text('confined_servers = ["files"]\n')
    (tmp_path / "outside").write_text("secret\n")
    (directory / ".env").write_text("KEY=1\n")
    (directory / "crooked.py").write_text(CROOKED.read_text())
    look = f"cat notes.md .env {tmp_path}/outside > seen 2>&1; exec python3 -I -S crooked.py"
    plan = json.dumps({"tools": [tool("read")], "mark": str(tmp_path)})
    arguments = ["-c", f"{look} '{plan}'"]
    bring(directory, files={"command": "sh", "args": arguments, "env": {"TOKEN": "t0ken"}})
    server.then(call("mcp__files__read", path="a"), "Done.")
    open_trusted(worker, mode="full")
    worker.say("Go.")

    assert worker.event(ToolFinished).text == '{"path": "a"}'
    assert worker.answer() == "Done."
    seen = (directory / "seen").read_text()
    assert "first line" in seen
    assert "KEY=1" not in seen
    assert f"{tmp_path}/outside: No such file" in seen
    assert running(str(tmp_path))
    worker.kill()
    end = monotonic() + 10
    while left := running(str(tmp_path)):
        assert monotonic() < end, left


def test_what_a_server_runs_is_not_changed_unasked(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    bring(directory, one={"command": "./start"}, two={"command": "python3", "args": ["two.py"]})
    server.then(
        *(call("write_file", file_path=each, content="x\n") for each in ("start", "two.py", "three.py")),
        "Done.",
    )
    open_trusted(worker, mode="auto")
    worker.say("Go.")

    for name in ("start", "two.py"):
        asked = worker.wait(Ask)
        assert asked.title == f"wants to write {name} (other programs obey it)"
        worker.decide(asked, "reject")
    assert worker.answer() == "Done."


def test_a_command_of_the_person_lets_tools_through_for_its_turn(
    worker: Worker, server: OpenAIServer, directory: Path, tmp_path: Path
) -> None:
    bring(directory, files=crooked("read"), other=crooked("read"))
    command = tmp_path / "home/.claude/commands/go.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\nallowed-tools: mcp__files\n---\nGo.")
    server.then(call("mcp__files__read"), call("mcp__other__read"))
    open_trusted(worker)
    worker.say(worker.command("go").send)

    assert worker.wait(Ask).title == "wants to call mcp__other__read"


def test_an_agent_of_a_file_has_the_tools_that_it_names(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    bring(directory, files=crooked("read", "write"))
    agent = directory / ".claude/agents/reader.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("---\ndescription: Reads.\ntools: Read, mcp__files__re*\n---\nRead.")
    task = call("task", subagent_type="reader", description="Read.")
    server.then(task, call("mcp__files__write"), call("mcp__files__read"), "Read.", "Done.")
    open_trusted(worker, mode="full")
    worker.say("Go.")

    assert worker.answer() == "Done."
    asked = server.requests[1]
    assert {each for each in asked.tools if each.startswith("mcp__")} == {"mcp__files__read"}
    assert server.requests[2].last.startswith("Error: ")
    assert server.requests[3].last == "{}"


def test_a_server_that_died_is_back_at_the_next_call(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    bring(directory, files=crooked("read", call="exit"))
    server.then(call("mcp__files__read"), call("mcp__files__read"), "Done.")
    open_trusted(worker, mode="full")
    worker.say("Go.")

    lost = worker.event(ToolFinished)
    assert (lost.code, "ended during this call" in lost.text) == ("remote_failed", True)
    assert worker.event(ToolFinished).code == "remote_failed"
    assert worker.answer() == "Done."
    assert worker.command("mcp", "files").text.startswith("files: 1 tool")
