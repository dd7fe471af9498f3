"""Make events of what commands print while they run, in the background too."""

from __future__ import annotations

from functools import partial
from threading import Lock
from time import monotonic
from typing import Final, NotRequired

from typing_extensions import TypedDict

from deepagents._async import BackgroundCode
from deepagents._state.run_end import RunEnd, run_end
from deepagents._state.runtime import Emit, emit
from deepagents._values import field, recordclass
from deepagents.backends.handle import FileCalls
from deepagents.backends.results import CommandStatus
from deepagents.errors import ToolFailure

_MOST_STREAMED: Final = 200_000
"""Characters of one command that become events."""
_MOST_IN_A_PIECE: Final = 8_000
_NO_MORE: Final = "\n... [the rest is not shown while the command runs]\n"
_LOOK_EVERY: Final = 0.2
_SHARE: Final = 10
"""How many times longer than one look the pause after it is at least: a provider may be far away."""
_MOST_REMEMBERED: Final = 256


class KnownCommand(TypedDict):
    """A command that an agent started: up to where it was read, and whether the agent knows that it ended.

    Without a `call_id` another agent has started it, and this one has read it.
    """

    command: str
    read: int
    call_id: NotRequired[str]
    ended: NotRequired[bool]


@recordclass
class OutputEvents:
    """Makes an event of each piece of one command's output, up to a bound."""

    call_id: str
    command_id: str | None = None
    emit: Emit = emit
    left: int = _MOST_STREAMED

    def __call__(self, text: str, stream: str) -> None:
        if self.left > 0 and text:
            self._emit(text[: self.left], stream)
            self.left -= len(text)
            if self.left <= 0:
                self._emit(_NO_MORE, stream)

    def _emit(self, text: str, stream: str) -> None:
        self.emit(
            "command_output", call_id=self.call_id, text=text, stream=stream, command_id=self.command_id
        )


@recordclass
class _Shown:
    """What of one command in the background has become events; all of it changes under `lock`."""

    command: str
    output: OutputEvents
    offset: int = 0
    refused: int = 0
    ended: bool = False
    run: RunEnd | None = None
    lock: Lock = field(default_factory=Lock)

    def take(self, status: CommandStatus) -> None:
        """Make events of what is new; of a flood the newest part."""
        about = {"call_id": self.output.call_id, "command_id": self.output.command_id}
        self.output(status.output[-_MOST_IN_A_PIECE:], "stdout")
        self.offset = status.next_offset
        for sentence in status.refused[self.refused :]:
            emit("host_refused", **about, text=sentence)
        self.refused = max(self.refused, len(status.refused))
        if status.exit_code is not None and not self.ended:
            self.ended = True
            emit("command_ended", **about, command=self.command, exit_code=status.exit_code)


class CommandEvents:
    """Makes events of what the commands of one agent in the background print, and of their ends.

    It lives as long as the agent, so that a run goes on where an earlier one of its thread stopped.
    """

    def __init__(self) -> None:
        self._shown: dict[str, _Shown] = {}

    async def follow(self, files: FileCalls, command_id: str, known: KnownCommand) -> None:
        """Make events of a command from now on, until it ends or this run does."""
        shown, end = self._find(command_id, known), run_end()
        # Without an end of the run, nothing would stop this.
        if shown is None or end is None or end is shown.run or shown.ended:
            return
        shown.run, following = end, BackgroundCode()

        async def go_on() -> None:
            pause = 0.0
            while not shown.ended and await following.pause(pause):
                begun = monotonic()
                try:
                    await self.look(files, command_id, known)
                except ToolFailure:
                    # The next step of the agent asks again, and the model reads why it cannot be reached.
                    return
                pause = max(_LOOK_EVERY, _SHARE * (monotonic() - begun))

        await following.start(go_on)
        end.add(partial(_stop, following))

    async def look(self, files: FileCalls, command_id: str, known: KnownCommand) -> CommandStatus:
        """Make events of what is new of a command, and return how it is.

        Raises:
            ToolFailure: when it cannot be reached.
        """
        shown = self._find(command_id, known)
        while True:
            offset = shown.offset if shown else known["read"]
            status = await files.poll_command(command_id, offset)
            if shown is None:
                return status
            with shown.lock:
                # Otherwise another look came first, and has made events of at least some of this.
                if shown.offset == offset:
                    shown.take(status)
                    return status

    def _find(self, command_id: str, known: KnownCommand) -> _Shown | None:
        """Return what was shown of a command of this agent; `None` for one of another agent."""
        if "call_id" not in known:
            return None
        new = _Shown(known["command"], OutputEvents(known["call_id"], command_id))
        shown = self._shown.setdefault(command_id, new)
        for oldest in list(self._shown)[:-_MOST_REMEMBERED]:
            self._shown.pop(oldest, None)
        return shown


async def _stop(following: BackgroundCode) -> None:
    await following.stop()
