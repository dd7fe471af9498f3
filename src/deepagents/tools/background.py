"""Start commands in the background, read what they print, write to them and stop them."""

from __future__ import annotations

from typing import Any, Final, cast

from pydantic import BaseModel, Field

from deepagents._async import as_io_call, finish_first
from deepagents._state.run_end import run_end
from deepagents._state.runtime import in_graph, read_channel, write_channel
from deepagents.backends.results import CommandStatus, ExecuteArtifact
from deepagents.errors import ToolFailure
from deepagents.tools._command_events import KnownCommand
from deepagents.tools._tool import ToolContext, ToolOutput, ToolSpec

COMMANDS_CHANNEL: Final = "background_commands"


def find_commands() -> dict[str, KnownCommand]:
    """Return the commands that this agent started, by their ids."""
    return cast("dict[str, KnownCommand]", read_channel(COMMANDS_CHANNEL) or {}) if in_graph() else {}


def note_command(command_id: str, known: KnownCommand) -> None:
    """Keep what is now known of a command."""
    if in_graph():
        write_channel(COMMANDS_CHANNEL, {command_id: known})


async def start_in_background(context: ToolContext, command: str, timeout: int | None) -> ToolOutput:
    """Start a command that ends with the run, unless its backend keeps it."""
    files = context.files
    can, end = files.capabilities(), run_end()
    if not can.background:
        raise ToolFailure("not_supported", "This backend runs no commands in the background.")
    if end is None and not can.keeps_commands:
        raise ToolFailure(
            "not_supported",
            "Nothing would end this command. Commands in the background need an agent of create_deep_agent, "
            "or a backend that is kept open: with LocalSandbox(...) as backend.",
        )

    async def start() -> str:
        command_id = await files.start_command(command, timeout)
        if end is not None and not can.keeps_commands:
            end.add(lambda: files.stop_command(command_id))
        return command_id

    # Cancelled in between, a command would run whose end nobody sees to.
    command_id = await finish_first(as_io_call(start))
    known = KnownCommand(command=command, read=0, call_id=context.call_id)
    note_command(command_id, known)
    await context.commands.follow(files, command_id, known)
    text = f"Started in the background: {command_id}. You are told when it ends."
    return ToolOutput(text, artifact=ExecuteArtifact(command_id=command_id))


class ReadCommandSchema(BaseModel):
    """The arguments of `read_command`."""

    command_id: str = Field(description="As execute returned it.")
    wait: int = Field(default=0, ge=0, description="Seconds to wait for its end before reading.")


def _find(context: ToolContext, command_id: str) -> KnownCommand:
    """Return what this agent knows of a command.

    Raises:
        ToolFailure: for an agent with rules and a command that another agent started, perhaps with more
            rights: a shell does what is written to it, and prints what this agent may not read.
    """
    if known := find_commands().get(command_id):
        return known.copy()
    if context.files.rights and context.files.rights.rules:
        raise ToolFailure("permission_denied", f"permission denied: this agent did not start {command_id!r}")
    return KnownCommand(command="", read=0)


async def _read_command(context: ToolContext, command_id: str, wait: int = 0) -> ToolOutput:
    known = _find(context, command_id)
    status = await context.files.poll_command(
        command_id, known["read"], min(wait, context.limits.execute_seconds)
    )
    if status.exit_code is not None:
        # Before the model is told of the end, there are events of it.
        await context.commands.look(context.files, command_id, known)
        known["ended"] = True
    known["read"] = status.next_offset
    note_command(command_id, known)
    artifact: Any = None if status.exit_code is None else ExecuteArtifact(exit_code=status.exit_code)
    return ToolOutput(_report(status), artifact=artifact)


def _report(status: CommandStatus) -> str:
    lines = [f"[{status.left_out} characters before this are not kept]"] if status.left_out else []
    lines.append(status.output.rstrip("\n") or "(no new output)")
    lines += [f"[{sentence}]" for sentence in status.refused]
    lines.append("[It runs]" if status.exit_code is None else f"[It ended with exit code {status.exit_code}]")
    return "\n".join(lines)


class WriteCommandSchema(BaseModel):
    """The arguments of `write_command`."""

    command_id: str = Field(description="As execute returned it.")
    text: str = Field(description="End a line with a newline.")
    close: bool = Field(default=False, description="Whether nothing more comes: the command reads the end.")


async def _write_command(context: ToolContext, command_id: str, text: str, close: bool = False) -> ToolOutput:
    _find(context, command_id)
    await context.files.write_command(command_id, text, close)
    return ToolOutput(
        f"Wrote {len(text)} characters to {command_id}{' and closed its input' if close else ''}."
    )


class StopCommandSchema(BaseModel):
    """The arguments of `stop_command`."""

    command_id: str = Field(description="As execute returned it.")


async def _stop_command(context: ToolContext, command_id: str) -> ToolOutput:
    _find(context, command_id)
    await context.files.stop_command(command_id)
    return await _read_command(context, command_id)


READ_COMMAND = ToolSpec(
    "read_command",
    "Read what a command in the background printed since you last read it, and whether it still runs.",
    ReadCommandSchema,
    _read_command,
    summary_arguments=("command_id",),
    about_background=True,
)
WRITE_COMMAND = ToolSpec(
    "write_command",
    "Write to the standard input of a command in the background.",
    WriteCommandSchema,
    _write_command,
    effect="run",
    summary_arguments=("command_id", "text"),
    about_background=True,
)
STOP_COMMAND = ToolSpec(
    "stop_command",
    "Stop a command in the background with all that it started, and read the rest of its output.",
    StopCommandSchema,
    _stop_command,
    summary_arguments=("command_id",),
    about_background=True,
)
