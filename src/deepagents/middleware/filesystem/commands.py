"""Tell a model at its next step which of its commands in the background have ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast
from uuid import uuid4

from langchain_core.messages import HumanMessage

from deepagents._state.runtime import write_channel
from deepagents._text import truncate
from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware._requests import Request, with_changes
from deepagents.tools._command_events import CommandEvents, KnownCommand
from deepagents.tools._fences import fence
from deepagents.tools.background import COMMANDS_CHANNEL, find_commands, note_command

_HEADER: Final = "[System notification about commands in the background. The user did not write this.]"
_MOST_SHOWN: Final = 100
_LAST_LINES: Final = 10
_LAST_CHARACTERS: Final = 1_000


async def follow_commands(state: Any, files: FileCalls, events: CommandEvents) -> None:
    """Go on to make events of commands that an earlier run of this thread has started."""
    for command_id, known in _running(state):
        await events.follow(files, command_id, known)


async def announce_ended(request: Request, files: FileCalls, events: CommandEvents) -> Request:
    """Return a request that ends with a message about commands that ended, if any have; state gets it too."""
    lines: list[str] = []
    for command_id, known in _running(request.state):
        try:
            exit_code = (await events.look(files, command_id, known)).exit_code
            how = f"has ended with exit code {exit_code}; read_command shows the rest of its output"
            printed = "" if exit_code is None else await _last_lines(files, command_id, known["read"])
        except ToolFailure as failure:
            # An id that the backend does not know comes from a run of another process.
            exit_code, how, printed = -1, f"cannot be reached any more ({failure.text})", ""
        if exit_code is not None:
            note_command(command_id, {**known, "ended": True})
            lines.append(f"{command_id} (`{truncate(known['command'], _MOST_SHOWN)}`) {how}.")
            lines += [printed] if printed else []
    await follow_commands(request.state, files, events)
    if not lines:
        return request
    message = HumanMessage(
        "\n".join([_HEADER, *lines]), id=str(uuid4()), additional_kwargs={"lc_source": COMMANDS_CHANNEL}
    )
    write_channel("messages", [message])
    return with_changes(request, messages=[*request.messages, message])


async def _last_lines(files: FileCalls, command_id: str, read: int) -> str:
    """Return the end of what a model has not read yet of a command, set apart as data."""
    output = (await files.poll_command(command_id, read)).output
    last = "\n".join(output.rstrip("\n").split("\n")[-_LAST_LINES:])[-_LAST_CHARACTERS:]
    return fence("last_lines", last, whence=f"was printed by {command_id}") if last.strip() else ""


def _running(state: Any) -> list[tuple[str, KnownCommand]]:
    """Return the commands whose end no message has announced to the model."""
    if not isinstance(state, Mapping) or not cast("Mapping[str, Any]", state).get(COMMANDS_CHANNEL):
        return []
    return [(command_id, known) for command_id, known in find_commands().items() if not known.get("ended")]
