"""List the slash commands, with those that files bring, and carry one out."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Mapping

from deepagents_cli.errors import CommandError, explain_error, is_for_people
from deepagents_cli.project.commands import FileCommand
from deepagents_cli.protocol import CommandInfo, Message
from deepagents_cli.session.agents import expand_command
from deepagents_cli.session.slash import project, threads, usage
from deepagents_cli.session.slash.parts import Answer, SlashCommand, Talk
from deepagents_cli.text import one_line

logger = logging.getLogger(__name__)

COMMANDS: Mapping[str, SlashCommand] = {
    each.name: each for each in (*threads.COMMANDS, *usage.COMMANDS, *project.COMMANDS)
}


def list_commands(brought: Mapping[str, FileCommand]) -> list[CommandInfo]:
    """Describe all commands for help and completion; those of files come last, and replace none."""
    own: list[CommandInfo] = [
        {"name": each.name, "description": each.description, "arguments": each.arguments}
        for each in COMMANDS.values()
    ]
    further: list[CommandInfo] = [
        {"name": one_line(name), "description": one_line(each.description), "arguments": one_line(each.hint)}
        for name, each in brought.items()
        if name not in COMMANDS
    ]
    return own + further


async def carry_out(talk: Talk, message: Message) -> None:
    """Carry out a command, or the writing of what it proposed, and send its result."""
    empty = dict.fromkeys(("text", "error", "choices", "ansi", "edit", "send"))
    try:
        given = await (_save(talk, message) if message["do"] == "save" else _run(talk, message))
    except Exception as error:
        # A command that fails says so, and the conversation goes on.
        if not is_for_people(error):
            logger.exception("The command failed.")
        given = {"error": explain_error(error)}
    talk.say("result", {"id": message.get("id"), **empty, **given})


async def _run(talk: Talk, message: Message) -> Answer:
    name, arguments = str(message.get("name")), str(message.get("arguments") or "").strip()
    if command := COMMANDS.get(name):
        answer = await command.run(talk, arguments)
        if proposed := answer.pop("proposal", None):
            talk.proposed[message["id"]] = proposed
        return answer
    place = talk.workplace
    if brought := place.setup.commands.get(name):
        text = await expand_command(f"/{name} {arguments}", place.setup, place.policy)
        talk.made[text] = brought
        return {"send": text}
    raise CommandError(f"There is no command /{one_line(name)}; /help lists them")


async def _save(talk: Talk, message: Message) -> Answer:
    proposal = talk.proposed.pop(message["id"], None)
    if proposal is None:
        raise CommandError("Nothing was proposed that could be written")
    await to_thread(proposal.write, message["text"])
    return {"text": f"Written: {one_line(str(proposal.path))}"}
