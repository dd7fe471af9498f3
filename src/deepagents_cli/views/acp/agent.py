"""Serve sessions to a client of the Agent Client Protocol: the methods that it calls."""

from __future__ import annotations

import asyncio
import re
import signal
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter, to_thread
from asyncio.streams import FlowControlMixin
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final, TypeAlias, cast
from weakref import WeakValueDictionary

from acp import AgentSideConnection, schema
from acp.exceptions import RequestError
from acp.interfaces import Agent, Client
from acp.meta import PROTOCOL_VERSION

from deepagents import __version__
from deepagents_cli.approval.backends import Gate
from deepagents_cli.errors import CommandError, explain_error
from deepagents_cli.project.servers import Server
from deepagents_cli.project.state import state_dir
from deepagents_cli.protocol import Open
from deepagents_cli.session.threads.sessions import Sessions
from deepagents_cli.session.workplace.editor import Editor
from deepagents_cli.text import one_line
from deepagents_cli.views.acp import updates
from deepagents_cli.views.acp.options import INVALID
from deepagents_cli.views.acp.prompts import Block
from deepagents_cli.views.acp.talk import Talk
from deepagents_cli.views.acp.wire import LONGEST, REQUEST, Wire

_NOT_FOUND: Final = -32002
_PAGE: Final = 100
"""Sessions that are listed at a time."""
_CURSOR: Final = re.compile("[0-9]{1,18}")
_Server: TypeAlias = schema.McpServerStdio | schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer
_Servers: TypeAlias = Sequence[_Server] | None


class EditorAgent:
    """The agent's side of a connection: sessions by their ids, each with an agent of its own.

    Args:
        opening: opens a session, but for its directory and its id.
    """

    def __init__(self, opening: Open) -> None:
        self._opening = opening
        self._talks: dict[str, Talk] = {}
        self._client: Client | None = None
        self._opened: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._gate = Gate()
        self._offers = schema.ClientCapabilities()

    def on_connect(self, conn: Client) -> None:
        """Note who hears of what happens, and is asked."""
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **meta: Any
    ) -> schema.InitializeResponse:
        """Say what this agent can do."""
        self._offers = client_capabilities or schema.ClientCapabilities()
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="deepagents", title="deepagents", version=__version__),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    async def new_session(
        self, cwd: str, mcp_servers: _Servers = None, **meta: Any
    ) -> schema.NewSessionResponse:
        """Open a new session in a directory."""
        session, talk = await self._open(cwd, None, mcp_servers)
        talk.start()
        return schema.NewSessionResponse(session_id=session, **await _choices(talk))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: _Servers = None, **meta: Any
    ) -> schema.LoadSessionResponse:
        """Open a session again, and tell the client all that is in it."""
        _, talk = await self._open(cwd, session_id, mcp_servers)
        talk.start()
        await talk.replay()
        return schema.LoadSessionResponse(**await _choices(talk))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: _Servers = None, **meta: Any
    ) -> schema.ResumeSessionResponse:
        """Open a session again, of which the client knows what is in it."""
        _, talk = await self._open(cwd, session_id, mcp_servers)
        talk.start()
        return schema.ResumeSessionResponse(**await _choices(talk))

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **meta: Any
    ) -> schema.ListSessionsResponse:
        """List the sessions of a directory, or all, those used last first."""
        if cursor is not None and not _CURSOR.fullmatch(cursor):
            raise RequestError(INVALID, f"{cursor!r} is not a cursor of this agent.")
        begin = int(cursor or 0)
        found = await to_thread(self._sessions.find_all, None if cwd is None else _directory(cwd))
        listed = [
            schema.SessionInfo(
                session_id=each.id,
                cwd=str(each.directory),
                title=updates.sound(one_line(each.name)) or None,
                updated_at=datetime.fromtimestamp(each.used, UTC).isoformat(),
            )
            for each in found[begin : begin + _PAGE]
        ]
        more = str(begin + _PAGE) if len(found) > begin + _PAGE else None
        return schema.ListSessionsResponse(sessions=listed, next_cursor=more)

    async def close_session(self, session_id: str, **meta: Any) -> schema.CloseSessionResponse:
        """Stop what a session does, and let others open it."""
        talk = self._find(session_id)
        del self._talks[session_id]
        await talk.close()
        return schema.CloseSessionResponse()

    async def set_session_mode(
        self, mode_id: str, session_id: str, **meta: Any
    ) -> schema.SetSessionModeResponse:
        """Change what is asked about."""
        await self._find(session_id).options.choose("mode", mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **meta: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Change the mode, the model, or how much that reasons."""
        talk = self._find(session_id)
        await talk.options.choose(config_id, value)
        return schema.SetSessionConfigOptionResponse(config_options=[*await talk.options.read()])

    async def prompt(self, prompt: Sequence[Block], session_id: str, **meta: Any) -> schema.PromptResponse:
        """Let the agent work until it stops."""
        talk = self._find(session_id)
        return schema.PromptResponse(stop_reason=await talk.prompt(prompt, meta[REQUEST]))

    async def cancel(self, session_id: str, **meta: Any) -> None:
        """Stop what a session does, or one request alone; its prompt then ends as cancelled."""
        request = meta.get(REQUEST)
        for session, talk in self._talks.items():
            if request is not None or session == session_id:
                talk.cancel(request)

    async def close(self) -> None:
        """End all sessions, with what they have started."""
        talks, self._talks = self._talks, {}
        await asyncio.gather(*(each.close() for each in talks.values()))

    @cached_property
    def _sessions(self) -> Sessions:
        return Sessions(state_dir())

    def _find(self, session: str) -> Talk:
        if session not in self._talks:
            raise RequestError(_NOT_FOUND, f"Session {session!r} is not open; open it with session/load.")
        return self._talks[session]

    async def _open(self, cwd: str, session: str | None, servers: _Servers) -> tuple[str, Talk]:
        assert self._client is not None, "a connection has a client"
        directory = _directory(cwd)
        try:
            given = read_servers(servers or (), directory)
            if session is None:
                talk = await self._enter(directory, None, given)
            else:
                # No session is opened twice; others do not wait for one that another process holds.
                async with self._opened.setdefault(session, asyncio.Lock()):
                    await self._make_free(session)
                    talk = await self._enter(directory, session, given)
        except CommandError as error:
            raise RequestError(INVALID, explain_error(error)) from error
        return (await talk.open()).thread, talk

    async def _make_free(self, session: str) -> None:
        if session in self._talks:
            await self.close_session(session)
        if not any(each.id == session for each in await to_thread(self._sessions.find_all)):
            raise RequestError(_NOT_FOUND, f"There is no session {session!r}.")

    async def _enter(self, directory: Path, session: str | None, servers: Sequence[Server]) -> Talk:
        opening = replace(self._opening, directory=str(directory), thread=session)
        talk = Talk(
            cast("Client", self._client), opening, Editor(self._sessions, servers), self._offers, self._gate
        )
        try:
            self._talks[(await talk.open()).thread] = talk
        except BaseException:
            await talk.close()
            raise
        return talk


def read_servers(given: Sequence[_Server], directory: Path) -> list[Server]:
    """Return the entries of servers; those that only the client could reach were not asked for."""
    return [
        Server(each.name, _entry(each), directory / "the editor", "option")
        for each in given
        if not isinstance(each, schema.AcpMcpServer)
    ]


def _entry(server: schema.McpServerStdio | schema.HttpMcpServer | schema.SseMcpServer) -> dict[str, Any]:
    if isinstance(server, schema.McpServerStdio):
        variables = {each.name: each.value for each in server.env}
        return {"command": server.command, "args": [*server.args], "env": variables}
    kind = "sse" if isinstance(server, schema.SseMcpServer) else "http"
    headers = {each.name: each.value for each in server.headers}
    return {"type": kind, "url": server.url, "headers": headers}


async def _choices(talk: Talk) -> dict[str, Any]:
    offered = await talk.options.read()
    return {"modes": talk.options.modes, "config_options": offered}


def _directory(cwd: str) -> Path:
    if not Path(cwd).is_absolute() or "\0" in cwd:
        raise RequestError(INVALID, f"{cwd!r} is not an absolute path.")
    return Path(cwd).resolve()


async def serve(opening: Open, given: IO[bytes], out: IO[bytes]) -> None:
    """Serve the client at these pipes until it is gone."""
    loop = asyncio.get_running_loop()
    reader = StreamReader(limit=LONGEST)
    await loop.connect_read_pipe(lambda: StreamReaderProtocol(reader), given)
    transport, flow = await loop.connect_write_pipe(FlowControlMixin, out)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, reader.feed_eof)
    agent = EditorAgent(opening)
    wire = Wire(reader, StreamWriter(transport, flow, None, loop))
    # `session/close` and `session/resume` count as unstable there.
    connection = AgentSideConnection(cast("Agent", agent), wire, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        await agent.close()
        await connection.close()
