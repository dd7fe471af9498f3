"""Run a server as a process and exchange lines with it, each of bounded length."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import StdioServerParameters
from mcp.client.stdio import get_default_environment, stdio_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from deepagents._programs import find_program, list_changeable
from deepagents.mcp import wire
from deepagents.mcp.entries import ServerEntry

_GUARD: Final = Path(__file__).with_name("_guard.py")
_CHUNK: Final = 64 * 1024
_SECONDS_TO_END: Final = 2.0
"""How long a server may take to end once its input has ended, as the protocol asks it to."""
_SECONDS_OF_GUARD: Final = 5.0
"""How long the guard takes at most: 2 s until it kills, and 2 s until it gives up."""
_LONGEST_LINE: Final = 1_000


class Lost(Exception):
    """The process of a server ended; the text says how."""


def _find_command(entry: ServerEntry) -> str:
    """Return the program of a server; of its name, one that an agent may have written comes last."""
    # A path, and a search path of its own, are what the person chose.
    if os.sep in entry.command or "PATH" in entry.env:
        return entry.command
    return find_program(entry.command, list_changeable()) or entry.command


@asynccontextmanager
async def open_process(
    entry: ServerEntry, most: int, left_out: Callable[[str, str], None], ended: Callable[[str], None]
) -> AsyncGenerator[tuple[Any, Any]]:
    """Start a server, and end it and all that it started; `ended` hears why, when it ends by itself.

    Raises:
        OSError: when its directory is not there.
    """
    environment = get_default_environment() | dict(entry.env)
    if sys.platform == "win32":
        # There the SDK holds a server in a job object, which ends with its owner; lines have no bound.
        parameters = StdioServerParameters(
            command=entry.command, args=[*entry.args], env=dict(entry.env), cwd=entry.cwd
        )
        async with stdio_client(parameters) as streams:
            yield streams
        return
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), _find_command(entry), *entry.args),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=environment,
        cwd=entry.cwd,
        start_new_session=True,
    )
    pipes = _Pipes(process, most, left_out, ended)
    # Not in a group of anyio, whose cancellation would end the reading before the process: asyncio takes a
    # process for ended once its pipes are, and one that is full and not read never is.
    tasks = [asyncio.ensure_future(work()) for work in (pipes.read, pipes.write, pipes.drain_errors)]
    try:
        yield pipes.received, pipes.to_send
    finally:
        pipes.close()
        with anyio.CancelScope(shield=True):
            await _end(process)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


class _Pipes:
    """Carries messages between the pipes of a process and the streams of the SDK."""

    def __init__(
        self, process: Process, most: int, left_out: Callable[[str, str], None], ended: Callable[[str], None]
    ) -> None:
        self._process, self._most = process, most
        self._left_out, self._ended = left_out, ended
        self._last_words = ""
        self._closing = False
        self._deliver, self.received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.to_send, self._outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    def close(self) -> None:
        self._closing = True
        for stream in (self._deliver, self.received, self.to_send, self._outgoing):
            stream.close()

    async def read(self) -> None:
        assert self._process.stdout is not None
        lines = wire.Lines(self._most)
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            while data := await self._process.stdout.read(_CHUNK):
                for message in filter(None, (self._parse(*each) for each in lines.feed(data))):
                    await self._deliver.send(message)
        if not self._closing:
            self._ended(await self._describe_end())
            self._deliver.close()
        with suppress(ConnectionError):
            while await self._process.stdout.read(_CHUNK):
                pass

    def _parse(self, line: bytes, is_too_long: bool) -> SessionMessage | None:
        line = line if not is_too_long else wire.too_large(line, self._most) or b""
        mended = wire.mend_message(line, self._left_out)
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(mended, by_name=False))
        except ValueError:
            # Servers print other things too; an answer that cannot be read is an error to who waits for it.
            request = wire.find_id(line)
            if request is None or b'"result"' not in line:
                return None
            broken = wire.error_message(request, -32_700, "the server sent an answer that cannot be read")
            return SessionMessage(jsonrpc_message_adapter.validate_json(broken, by_name=False))

    async def write(self) -> None:
        assert self._process.stdin is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError, RuntimeError):
            async for message in self._outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(text.encode() + b"\n")
                await self._process.stdin.drain()

    async def drain_errors(self) -> None:
        """Read what the server prints to its standard error for ever, and remember the last line."""
        assert self._process.stderr is not None
        lines = wire.Lines(_LONGEST_LINE)
        while data := await self._process.stderr.read(_CHUNK):
            for line, _ in lines.feed(data):
                self._last_words = line.decode(errors="replace").strip() or self._last_words

    async def _describe_end(self) -> str:
        # The guard ends after the server; what it prints last may still be under way.
        with anyio.move_on_after(_SECONDS_OF_GUARD):
            await self._process.wait()
            await asyncio.sleep(0)
        status = self._process.returncode
        how = "its process ended its output" if status is None else f"its process ended with status {status}"
        return f"{how}: {self._last_words}" if self._last_words else how


async def _end(process: Process) -> None:
    """End a server: close its input, wait, then let its guard end all of it."""
    assert process.stdin is not None
    process.stdin.close()
    if await _wait(process, _SECONDS_TO_END):
        return
    with suppress(ProcessLookupError):
        process.terminate()
    if not await _wait(process, _SECONDS_OF_GUARD):
        with suppress(ProcessLookupError):
            process.kill()


async def _wait(process: Process, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        await process.wait()
        return True
    return False
