"""Nothing of a server outlives its owner, however that ends."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from deepagents import create_deep_agent
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel
from tests.mcp.servers import crooked

pytestmark = pytest.mark.slow

TRIALS = int(os.environ.get("MCP_KILLS", "3"))
SECONDS = 6.0


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def all_end(pids: list[int], seconds: float = SECONDS) -> bool:
    """Wait until none of the processes lives; return whether that came in time."""
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        if not any(map(is_alive, pids)):
            return True
        sleep(0.05)
    return False


def pids_of(servers: MCPServers) -> list[int]:
    [tool] = servers.tools()
    return [int(each) for each in str(tool.invoke({})).split()]


def test_close_ends_the_server_and_what_it_left_behind(call_mode: Any) -> None:
    servers = MCPServers({"one": crooked("daemon", call="daemon")})
    pids = pids_of(servers)
    assert all(map(is_alive, pids))

    call_mode.call(servers, "close")

    assert all_end(pids, 1)


def test_a_stubborn_server_is_closed_within_ten_seconds() -> None:
    servers = MCPServers({"one": crooked("pid", call="pid", start="stubborn")})
    pids = pids_of(servers)
    begun = monotonic()

    servers.close()

    assert monotonic() - begun < 10
    assert all_end(pids, 1)


def test_servers_end_when_the_last_agent_is_collected(call_mode: Any) -> None:
    servers = MCPServers({"one": crooked("pid", call="pid")})
    pids = pids_of(servers)
    agent = create_deep_agent(ScriptedModel("Done."), mcp=servers)
    del servers
    call_mode.invoke(agent, {"messages": "Go."})
    assert all(map(is_alive, pids))

    del agent
    # A thread that has just done a part of the run may hold it for a moment longer.
    deadline = monotonic() + SECONDS
    while any(map(is_alive, pids)) and monotonic() < deadline:
        gc.collect()
        sleep(0.05)

    assert all_end(pids, 0.1)


def test_a_fork_has_servers_of_its_own_and_leaves_those_of_its_parent(tmp_path: Path) -> None:
    program = """
import os, sys
from deepagents.mcp import MCPServers
servers = MCPServers({"one": ENTRY})
with servers:
    [tool] = servers.tools()
    mine = tool.invoke({})
    child = os.fork()
    if child == 0:
        print(servers.tools()[0].invoke({}) != mine, flush=True)
        servers.close()
        sys.exit(0)
    os.waitpid(child, 0)
    print(servers.tools()[0].invoke({}) == mine, flush=True)
""".replace("ENTRY", repr(crooked("pid", call="pid")))

    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)

    assert done.stdout.split() == ["True", "True"], done.stderr


PROGRAM = """
import sys
import deepagents
from deepagents.testing import ScriptedModel
deepagents.create_deep_agent(ScriptedModel())
print([name for name in ("mcp", "deepagents.mcp.servers") if name in sys.modules])
from deepagents.mcp import MCPServers
servers = MCPServers({"one": ENTRY})
print([name for name in ("mcp", "mcp_types") if name in sys.modules])
print(servers.tools()[0].invoke({}))
"""


def test_without_servers_nothing_is_loaded_and_with_the_program_they_end() -> None:
    program = PROGRAM.replace("ENTRY", repr(crooked("daemon", call="daemon")))

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    before, made, pids = done.stdout.splitlines()
    assert (before, made, done.returncode, done.stderr) == ("[]", "[]", 0, "")
    assert all_end([int(each) for each in pids.split()], 1)


NURSERY = """
import os, sys, time
import deepagents.mcp.connection
from deepagents.mcp import MCPServers
print("ready", flush=True)
for _ in sys.stdin:
    owner = os.fork()
    if owner == 0:
        for tool in MCPServers(SERVERS).tools():
            print(tool.invoke({}), flush=True)
        time.sleep(600)
    print("owner", owner, flush=True)
    os.waitpid(owner, 0)
    print("ended", flush=True)
"""


def started_by(pid: int) -> list[int]:
    """Return the processes below one, whatever group they are in."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found, waiting = list[int](), [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_lives_after_the_owner_was_killed_at_any_moment() -> None:
    chosen = random.Random(7)
    stubborn = crooked("pid", call="pid", start="stubborn")
    servers = {"one": crooked("daemon", call="daemon"), "two": stubborn}
    program = [sys.executable, "-W", "ignore", "-c", NURSERY.replace("SERVERS", repr(servers))]
    # Owners are forked from a process that has imported all, and killed while they start their servers, or
    # soon after.
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        assert nursery.stdin
        assert nursery.stdout
        nursery.stdout.readline()
        for trial in range(TRIALS):
            nursery.stdin.write("\n")
            nursery.stdin.flush()
            owner = int(nursery.stdout.readline().split()[1])
            sleep(chosen.uniform(0, 1.5))
            pids = started_by(owner)

            os.kill(owner, signal.SIGKILL)
            begun = monotonic()
            while (line := nursery.stdout.readline().strip()) != "ended":
                pids += [int(each) for each in line.split()]

            assert all_end(pids, SECONDS - (monotonic() - begun)), (trial, list(filter(is_alive, pids)))
        nursery.stdin.close()


WITHOUT_POSIX = """
import asyncio, concurrent.futures, multiprocessing, os, signal, subprocess, sys
import httpx2, jsonschema, langchain.agents, langgraph.graph, mcp.client.stdio

for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for module, names in {os: ["getuid", "killpg", "setsid"], signal: ["SIGCHLD", "SIGHUP", "SIGKILL"]}.items():
    for name in names:
        delattr(module, name)
sys.platform = "win32"
import deepagents.mcp.connection, deepagents.mcp._guard, deepagents.middleware.code_mode
from deepagents.mcp import MCPServers
from mcp.server.mcpserver import MCPServer
print(MCPServers({"one": MCPServer("one"), "two": {"command": "npx"}}).status()["two"].status)
"""


def test_nothing_of_posix_is_needed_to_import_it() -> None:
    """Where there are no groups of processes, servers over HTTP and those of this process still serve."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_POSIX], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("idle\n", "")
