"""Describe the state of servers: what their connections note, and what callers are shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from deepagents._values import field, frozenclass, recordclass, valueclass
from deepagents.mcp.entries import Transport
from deepagents.mcp.offered import Offered

Status: TypeAlias = Literal["idle", "starting", "ready", "failed", "stopped"]


@valueclass
class ServerLimits:
    """What holds for all servers of a set: seconds, bytes, and directories."""

    startup_timeout: float
    call_timeout: float
    max_message_bytes: int
    roots: Sequence[str]


@recordclass
class State:
    """What is known of a server. Its connection writes it, in its own thread; others only read it.

    `held` are tools that changed or came later, behind a pin; `is_stale` says that the list changed since.
    """

    transport: Transport
    status: Status = "idle"
    error: str | None = None
    protocol: str | None = None
    tools: tuple[Offered, ...] = ()
    held: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    resources: bool = False
    was_listed: bool = False
    is_stale: bool = False
    retry_at: float = 0.0


@frozenclass
class ServerStatus:
    """Show how it is with one server.

    Args:
        name: the name of its entry.
        transport: "stdio", "http", "sse", or "memory" for a server of this process.
        status: "idle" before its first use, "starting", "ready", "failed", or "stopped".
        error: why it failed.
        tools: how many tools it offers.
        protocol: the revision of the protocol that it speaks.
        changed: its tools whose definition is not that of its first list.
        skipped: its tools that are left out, because they cannot be offered.
    """

    name: str
    transport: Transport
    status: Status
    error: str | None
    tools: int
    protocol: str | None
    changed: tuple[str, ...]
    skipped: tuple[str, ...]


def show(name: str, state: State) -> ServerStatus:
    """Return what callers are shown."""
    return ServerStatus(
        name,
        state.transport,
        state.status,
        state.error,
        len(state.tools),
        state.protocol,
        state.changed,
        tuple(state.skipped),
    )


def describe_missing(server: str, state: State) -> str:
    """Describe why a server is not there."""
    if state.status == "stopped":
        return f"the MCP server {server!r} is closed or switched off"
    return f"the MCP server {server!r} is not there: {state.error or 'it is not started yet'}"


def describe_held(server: str, tool: str) -> str:
    """Describe why a tool behind a pin cannot be called."""
    return (
        f"the tool {tool!r} of the MCP server {server!r} changed after its server was first started, and is "
        "held back by its pin; a person has to look at it"
    )
