"""Tell a model at its next step which of its commands in the background have ended."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from langchain_core.messages import HumanMessage

from deepagents._state.runtime import in_graph, write_channel
from deepagents._text import truncate
from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware._requests import Request, with_changes
from deepagents.tools.background import COMMANDS_CHANNEL, known_commands, note_command

_HEADER: Final = "[System notification about commands in the background. The user did not write this.]"
_MOST_SHOWN: Final = 100


async def announce_ended(request: Request, files: FileCalls) -> Request:
    """Return a request that ends with a message about commands that ended, if any have; state gets it too."""
    if not request.state.get(COMMANDS_CHANNEL) or not in_graph():
        return request
    lines: list[str] = []
    for command_id, known in known_commands().items():
        if known.get("ended"):
            continue
        try:
            exit_code = (await files.poll_command(command_id, known["read"])).exit_code
            how = f"has ended with exit code {exit_code}; read_command shows the rest of its output"
        except ToolFailure as failure:
            # An id that the backend does not know comes from a run of another process.
            exit_code, how = -1, f"cannot be reached any more ({failure.text})"
        if exit_code is not None:
            note_command(command_id, {**known, "ended": True})
            lines.append(f"{command_id} (`{truncate(known['command'], _MOST_SHOWN)}`) {how}.")
    if not lines:
        return request
    message = HumanMessage(
        "\n".join([_HEADER, *lines]), id=str(uuid4()), additional_kwargs={"lc_source": COMMANDS_CHANNEL}
    )
    write_channel("messages", [message])
    return with_changes(request, messages=[*request.messages, message])
