"""Whole sessions that clients of the protocol drive, as the registries of packages have them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any, cast

import acp
import pytest
from acp import schema

from tests.cli.openai_server import MODEL, OpenAIServer, Reply, call

pytestmark = pytest.mark.slow

AGENT = (sys.executable, "-P", "-m", "deepagents_cli", "acp", "--model", f"local-server:{MODEL}")
SOURCES = Path(__file__).parent / "javascript"
PLACE = Path(gettempdir(), "deepagents-acp-client")
PATIENCE = 120
PATIENT = {"shutdown_timeout": PATIENCE}
"""A busy machine needs more than the two seconds that the package gives an agent to end."""
TODOS = [{"content": "look", "status": "completed"}, {"content": "write", "status": "in_progress"}]


class Client:
    """The client of the Python package, and what it was told."""

    def __init__(self, *answers: str) -> None:
        self.answers = [*answers]
        self.asked: list[schema.ToolCallUpdate] = []
        self.updates: list[Any] = []
        self.written = asyncio.Event()

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=self.answers.pop(0))
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        if isinstance(update, schema.AgentMessageChunk):
            self.written.set()

    def texts(self, kind: type[Any]) -> str:
        return "".join(each.content.text for each in self.updates if isinstance(each, kind))

    def on_connect(self, conn: Any) -> None:
        return


@pytest.fixture
def environment(server: OpenAIServer, state: Path, tmp_path: Path) -> Mapping[str, str]:
    """What the agent finds."""
    (tmp_path / "home").mkdir()
    return {
        "PATH": os.environ["PATH"],
        "DEEPAGENTS_LOCAL_SERVER": server.address,
        "DEEPAGENTS_STATE": str(state),
        "DEEPAGENTS_SETTINGS": str(tmp_path / "settings.toml"),
        "HOME": str(tmp_path / "home"),
    }


def _script(server: OpenAIServer) -> None:
    server.then(
        call("edit_file", file_path="notes.md", old_string="first", new_string="1st"),
        "Changed.",
        Reply(calls=[("execute", {"command": "touch ran"}), ("write_todos", {"todos": TODOS})]),
        "Planned.",
        Reply("a long answer", every=0.5),
        "Here I am.",
    )


async def test_the_client_of_the_python_package_drives_a_session(
    server: OpenAIServer, directory: Path, environment: Mapping[str, str]
) -> None:
    _script(server)
    first, second = Client("allow", "reject"), Client()
    stops: list[str] = []

    async def ask(agent: Any, session: str, text: str) -> None:
        done = await asyncio.wait_for(
            agent.prompt(session_id=session, prompt=[acp.text_block(text)]), PATIENCE
        )
        stops.append(done.stop_reason)

    async with acp.spawn_agent_process(
        cast("Any", first), *AGENT, env=environment, transport_kwargs=PATIENT
    ) as (agent, process):
        await asyncio.wait_for(agent.initialize(protocol_version=acp.PROTOCOL_VERSION), PATIENCE)
        session = (await agent.new_session(cwd=str(directory), mcp_servers=[])).session_id
        await ask(agent, session, "Change the notes.")
        await ask(agent, session, "Run a command, and plan.")
        first.written.clear()
        turn = asyncio.create_task(ask(agent, session, "Write at length."))
        await first.written.wait()
        await agent.cancel(session_id=session)
        await turn
        process.kill()
        await process.wait()
    async with acp.spawn_agent_process(
        cast("Any", second), *AGENT, env=environment, transport_kwargs=PATIENT
    ) as (agent, process):
        await asyncio.wait_for(agent.initialize(protocol_version=acp.PROTOCOL_VERSION), PATIENCE)
        await agent.load_session(session_id=session, cwd=str(directory), mcp_servers=[])
        replayed = second.texts(schema.AgentMessageChunk)
        await ask(agent, session, "And now?")

    assert stops == ["end_turn", "end_turn", "cancelled", "end_turn"]
    assert [each.kind for each in first.asked] == ["edit", "execute"]
    assert any(isinstance(each, schema.FileEditToolCallContent) for each in first.asked[0].content or ())
    plans = [each for each in first.updates if isinstance(each, schema.AgentPlanUpdate)]
    assert [each.status for each in plans[-1].entries] == ["completed", "in_progress"]
    assert "Changed.Planned." in replayed
    assert second.texts(schema.UserMessageChunk).startswith("Change the notes.Run a command, and plan.")
    assert (directory / "notes.md").read_text() == "1st line\nsecond line\n"
    assert not (directory / "ran").exists()
    assert process.returncode == 0


def test_the_client_of_the_npm_package_drives_a_session(
    server: OpenAIServer, directory: Path, environment: Mapping[str, str]
) -> None:
    node = _install()
    _script(server)

    done = subprocess.run(
        [node, str(PLACE / "story.mjs"), str(directory), *AGENT],
        env=environment, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["stops"] == ["end_turn", "end_turn", "cancelled", "end_turn"]
    assert seen["asked"] == [
        {"kind": "edit", "content": ["content", "diff"]},
        {"kind": "execute", "content": ["content", "content"]},
    ]
    assert seen["plan"] == ["completed: look", "in_progress: write"]
    assert sorted(seen["statuses"].values()) == ["completed", "failed"]
    assert seen["listed"] == ["Change the notes."]
    assert "Changed.Planned." in seen["replayed"]
    assert seen["replayed"].endswith("Here I am.")
    assert seen["code"] == 0
    assert (directory / "notes.md").read_text() == "1st line\nsecond line\n"


def _install() -> str:
    """Install what the lock file names, once for each lock file; without a registry, skip the test."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("npm is not there; install Node.js")
    mark, wanted = PLACE / "installed", (SOURCES / "package-lock.json").read_text()
    PLACE.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "story.mjs"):
        shutil.copy(SOURCES / name, PLACE)
    if not (mark.is_file() and mark.read_text() == wanted):
        install = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(install, cwd=PLACE, capture_output=True, text=True, timeout=280, check=False)
        if done.returncode:
            pytest.skip(f"the client cannot be installed here: {done.stderr[-300:]}")
        mark.write_text(wanted)
    return node
