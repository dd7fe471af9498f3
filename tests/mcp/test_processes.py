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

TRIALS = int(os.environ.get("DEEPAGENTS_MCP_KILLS", "3"))
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
    gc.collect()

    assert all_end(pids)


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


OWNER = """
import sys
from deepagents.mcp import MCPServers
servers = MCPServers({"one": %r, "two": %r})
print("begin", flush=True)
for tool in servers.tools():
    print(tool.invoke({}), flush=True)
sys.stdin.read()
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
@pytest.mark.parametrize("trial", range(TRIALS))
def test_nothing_lives_after_the_owner_was_killed_at_any_moment(trial: int) -> None:
    chosen = random.Random(trial)
    program = OWNER % (crooked("daemon", call="daemon"), crooked("pid", call="pid", start="stubborn"))
    owner = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout
    assert owner.stdin
    owner.stdout.readline()
    # Two seconds hold a start on a busy machine: some trials are killed in the middle, some when all is up.
    sleep(chosen.uniform(0, 2.5))
    pids = started_by(owner.pid)

    os.kill(owner.pid, signal.SIGKILL)
    begun = monotonic()
    pids += [int(each) for each in owner.stdout.read().split()]
    owner.wait()
    owner.stdin.close()
    owner.stdout.close()

    assert all_end(pids, SECONDS - (monotonic() - begun)), [pid for pid in pids if is_alive(pid)]
