"""Run commands in terminals of a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from time import monotonic
from typing import Final

from acp import schema
from acp.exceptions import RequestError
from acp.interfaces import Client
from pydantic import ValidationError

from deepagents.backends.local_shell.process import Control, Ended
from deepagents_cli.views.acp.answering import Answering

_MOST_BYTES: Final = 100_000
_LOOK_EVERY: Final = 0.2
_LEFT_OUT: Final = "[The beginning of the output was left out.]"
_MAY_BEGIN: Final = (
    "Error: the editor was asked to run this, and {error}. It may do so later: look before you repeat it"
)


class ClientTerminals:
    """Runs commands of one session in terminals of its client; made in the loop, and called in threads.

    Args:
        find_call: finds the call that wants a command to be run; others, such as hooks, are not shown.
        show: takes the id of that call, and the terminal.
        say: tells the person what is different from now on.
    """

    def __init__(
        self,
        client: Client,
        session: Callable[[], str],
        directory: str,
        find_call: Callable[[str], str | None],
        show: Callable[[str, str], None],
        say: Callable[[str], None],
    ) -> None:
        self._client = client
        self._session = session
        self._directory = directory
        self._find_call = find_call
        self._show = show
        self._answering = Answering("From now on, commands run outside of its terminals", say)
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()

    def __call__(self, command: str, seconds: float, control: Control) -> Ended | None:
        """Run a command for so many seconds, or until it is cancelled; `None` where the client does not."""
        if get_ident() == self._thread:
            return None
        running = self._run(command, seconds, control)
        return asyncio.run_coroutine_threadsafe(running, self._loop).result()

    async def _run(self, command: str, seconds: float, control: Control) -> Ended | None:
        session, call_id = self._session(), self._find_call(command)
        if call_id is None or self._answering.is_over:
            return None
        begins = self._client.create_terminal(
            session_id=session,
            command="/bin/sh",
            args=["-c", command],
            cwd=self._directory,
            output_byte_limit=_MOST_BYTES,
        )
        try:
            made = await self._answering.wait(begins)
        except TimeoutError as error:
            return Ended(_MAY_BEGIN.format(error=error), 0, 1)
        except (RequestError, ValidationError, ConnectionError):
            # Nothing has run yet.
            return None
        self._show(call_id, made.terminal_id)
        try:
            return await self._wait(session, made.terminal_id, seconds, control)
        except (RequestError, ValidationError, ConnectionError, TimeoutError) as error:
            return Ended(f"Error: the editor did not say how the command ended: {error}", 0, 1)
        finally:
            with suppress(RequestError, ValidationError, ConnectionError, TimeoutError):
                released = self._client.release_terminal(session_id=session, terminal_id=made.terminal_id)
                await self._answering.wait(released)

    async def _wait(self, session: str, terminal: str, seconds: float, control: Control) -> Ended:
        ends = asyncio.create_task(
            self._client.wait_for_terminal_exit(session_id=session, terminal_id=terminal)
        )
        end = monotonic() + seconds
        while not ends.done() and monotonic() < end and not control.is_cancelled.is_set():
            await asyncio.wait([ends], timeout=_LOOK_EVERY)
        exit_code = _exit_code(ends.result()) if ends.done() else None
        if not ends.done():
            killed = self._client.kill_terminal(session_id=session, terminal_id=terminal)
            await self._answering.wait(killed)
            ends.cancel()
        asked = self._client.terminal_output(session_id=session, terminal_id=terminal)
        printed = await self._answering.wait(asked)
        notes = (_LEFT_OUT,) if printed.truncated else ()
        return Ended(printed.output.replace("\r\n", "\n"), 0, exit_code, notes=notes)


def _exit_code(ended: schema.WaitForTerminalExitResponse) -> int:
    """Return how a command ended; the protocol names a signal, and not its number."""
    return ended.exit_code if ended.exit_code is not None else 1
