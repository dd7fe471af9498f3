"""Run the command of a status line of one's own, and keep the line that it prints."""

from __future__ import annotations

import json
from asyncio import Task, create_task, get_running_loop, sleep, timeout
from collections.abc import Callable, Mapping
from typing import Any, Final

from deepagents.backends.protocol import ExecuteResponse
from deepagents.errors import BackendError
from deepagents_cli.approval.backends import printed_by, run_with_input
from deepagents_cli.text import one_line

_SECONDS: Final = 1
"""How long it may take, and how long it is waited with the next one."""
_LONGEST: Final = 500
"""Characters of the line."""


class OwnLine:
    """Runs the command, like a hook, when the facts have changed: one at a time, at most once a second.

    `changed` is called when the line has changed. Of a command that fails, `notify` hears once.
    """

    def __init__(
        self,
        command: str,
        find_shell: Callable[[], Any],
        changed: Callable[[], None],
        notify: Callable[[str], None],
    ) -> None:
        self.text = ""
        self._command = command
        self._find_shell = find_shell
        self._changed = changed
        self._notify = notify
        self._facts: Mapping[str, Any] | None = None
        self._shown: Mapping[str, Any] | None = None
        """The facts that the line is about."""
        self._task: Task[None] | None = None
        self._has_failed = False

    def see(self, facts: Mapping[str, Any]) -> None:
        """Run the command where these facts are others."""
        self._facts = facts
        if self._task is None and facts != self._shown:
            self._task = create_task(self._run())

    async def close(self) -> None:
        """Wait for the command that runs, and start no other."""
        self._facts = self._shown
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        clock = get_running_loop().time
        try:
            while self._facts is not None and self._facts != self._shown:
                begun, self._shown = clock(), self._facts
                text = await self._ask(self._shown)
                if text != self.text:
                    self.text = text
                    self._changed()
                if self._facts != self._shown:
                    await sleep(max(begun + _SECONDS - clock(), 0))
        finally:
            self._task = None

    async def _ask(self, facts: Mapping[str, Any]) -> str:
        try:
            given = json.dumps(facts, default=str)
            async with timeout(2 * _SECONDS):
                ended = await run_with_input(self._find_shell(), self._command, given, _SECONDS)
        except (BackendError, OSError, TimeoutError) as error:
            self._fail(str(error) or "it took too long")
            return ""
        if ended.exit_code:
            self._fail(_describe(ended))
            return ""
        return next((line for line in ended.output.split("\n") if line.strip()), "")[:_LONGEST]

    def _fail(self, why: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._notify(f"The command of the status line shows nothing: {one_line(why)}")


def _describe(ended: ExecuteResponse) -> str:
    output = printed_by(ended).strip()
    return f"it ended with {ended.exit_code}{f': {output[:200]}' if output else ''}"
