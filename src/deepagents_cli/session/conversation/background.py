"""Look after the commands in the background: list, read and stop them, and wake the agent when one ends."""

from __future__ import annotations

import time
from asyncio import Task, create_task, sleep, to_thread
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from deepagents._values import valueclass
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.backends.results import CommandStatus
from deepagents.errors import BackendError
from deepagents.events import CommandEnded
from deepagents_cli.approval.policy import Policy
from deepagents_cli.errors import CommandError
from deepagents_cli.text import one_line

_EVERY: Final = 0.5
"""Seconds between two looks while a command runs and the agent does not."""
_ONLY_THE_END: Final = 1 << 60
"""An offset behind all output."""


@valueclass
class Listed:
    """A command in the background: for how many seconds, its last line, and its end, if it has one."""

    id: str
    command: str
    seconds: float
    last: str
    exit_code: int | None


class Background:
    """The commands in the background that the backend of a conversation knows."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.stopped: set[str] = set()
        """The commands that the person has stopped."""

    @property
    def _commands(self) -> SandboxBackendProtocol:
        return cast("SandboxBackendProtocol", self._policy.backend)

    async def find_all(self) -> Sequence[Listed]:
        """Return the commands that are known, those that run first."""
        started: Mapping[str, Any] = getattr(self._policy.backend, "started", {})
        found: list[Listed] = []
        for number, each in [*started.items()]:
            try:
                status = await self.read(number)
            except CommandError:
                # Those that ended long ago are forgotten.
                continue
            lines = [line for line in status.output.splitlines() if line.strip()]
            seconds = time.monotonic() - each.at
            last = one_line(lines[-1]) if lines else ""
            found.append(Listed(number, one_line(each.command), seconds, last, status.exit_code))
        return sorted(found, key=lambda each: each.exit_code is not None)

    async def read(self, number: str, offset: int = 0) -> CommandStatus:
        """Return what a command printed, of much the newest part, and whether it has ended.

        Raises:
            CommandError: for a command that is not known.
        """
        try:
            return await to_thread(self._commands.poll_command, number, offset=offset)
        except BackendError as error:
            raise CommandError(error.text) from error

    async def stop(self, number: str) -> CommandStatus:
        """End a command with all that it started; this does not wake the agent.

        Raises:
            CommandError: for a command that is not known, or does not end.
        """
        self.stopped.add(number)
        try:
            await to_thread(self._commands.stop_command, number)
        except BackendError as error:
            raise CommandError(error.text) from error
        return await self.read(number)


class Wakes:
    """Tells the view when a command ends while its agent is idle, and wakes the agent, within bounds.

    Args:
        most: how often in a row without a word of the person.
        is_working: whether a turn is under way, in which the model reads of it by itself.
        is_asking: whether the person is asked something, or has a command carried out.
        wake: begins a turn, in which the model reads how the command has ended.
        show: takes the end of a command, and whether the agent is left asleep.
    """

    def __init__(
        self,
        background: Background,
        most: int,
        is_working: Callable[[], bool],
        is_asking: Callable[[], bool],
        wake: Callable[[], None],
        show: Callable[[CommandEnded, bool], None],
    ) -> None:
        self._background = background
        self._most = self._left = most
        self._is_working = is_working
        self._is_asking = is_asking
        self._wake = wake
        self._show = show
        self._task: Task[None] | None = None

    def hear(self) -> None:
        """Note a word of the person."""
        self._left = self._most

    def watch(self, running: Mapping[str, Mapping[str, Any]], *, wakes: bool) -> None:
        """Watch the commands that run when a turn is over; `wakes` unless it was stopped or has failed."""
        self.rest()
        if running:
            self._task = create_task(self._watch({**running}, wakes=wakes))

    def rest(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self, running: dict[str, Mapping[str, Any]], *, wakes: bool) -> None:
        due = False
        while running or due:
            await sleep(_EVERY)
            if self._is_working():
                # It ends by watching anew.
                return
            for number in [*running]:
                try:
                    status = await self._background.read(number, _ONLY_THE_END)
                except CommandError:
                    # One of an earlier process; the model reads so with the next message.
                    del running[number]
                    continue
                if status.exit_code is not None:
                    known = running.pop(number)
                    counts = wakes and number not in self._background.stopped
                    due = due or (counts and self._left > 0)
                    ended = CommandEnded(known.get("call_id", ""), number, known["command"], status.exit_code)
                    self._show(ended, counts and not due)
            if due and not self._is_asking():
                self._left -= 1
                self._wake()
                return
