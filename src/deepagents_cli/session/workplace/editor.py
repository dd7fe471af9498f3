"""Say what an editor gives the sessions that it shows."""

from __future__ import annotations

from collections.abc import Sequence

from deepagents._values import valueclass
from deepagents_cli.approval.backends import GatedBuffers, Terminals
from deepagents_cli.project.servers import Server
from deepagents_cli.session.threads.sessions import Sessions


@valueclass
class Editor:
    """An editor: its sessions are in one process, so they share the register, with its locks.

    `servers` are the MCP servers that it names, which its person has chosen. `files` are its buffers,
    `terminals` run commands without the sandbox, and with `has_forms` it shows what is asked at once.
    """

    sessions: Sessions
    servers: Sequence[Server] = ()
    files: GatedBuffers | None = None
    terminals: Terminals | None = None
    has_forms: bool = False
