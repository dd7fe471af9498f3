"""The table of slash commands: name, description, arguments, function."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from deepagents_cli.errors import CommandError, describe_error
from deepagents_cli.protocol import CommandInfo, Message
from deepagents_cli.worker.commands import threads
from deepagents_cli.worker.commands.parts import SlashCommand, Talk

logger = logging.getLogger(__name__)

COMMANDS: Mapping[str, SlashCommand] = {each.name: each for each in (*threads.COMMANDS,)}


def list_commands(commands: Mapping[str, SlashCommand]) -> list[CommandInfo]:
    """Describe commands for help and completion."""
    return [
        {"name": each.name, "description": each.description, "arguments": each.arguments}
        for each in commands.values()
    ]


async def carry_out(talk: Talk, message: Message) -> None:
    """Carry out a command, or the writing of what it proposed, and send its result."""
    empty = dict.fromkeys(("text", "choices", "ansi", "edit", "send"))
    try:
        command = COMMANDS.get(message.get("name", ""))
        if command is None:
            raise CommandError(f"There is no command /{message.get('name')}; /help lists them")
        given = await command.run(talk, str(message.get("arguments") or "").strip())
    except CommandError as error:
        given = {"text": describe_error(error)}
    except Exception as error:
        # A command that fails says so, and the conversation goes on.
        logger.exception("The command failed.")
        given = {"text": describe_error(error)}
    talk.say("result", {"id": message.get("id"), **empty, **given})
