"""Carry out slash commands, in the worker: those of this package and those that files bring."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Mapping
from dataclasses import replace

from deepagents_cli.errors import CommandError, explain_error, is_for_people
from deepagents_cli.project.commands import FileCommand
from deepagents_cli.protocol import Invoke, Result, Save
from deepagents_cli.session.agent.agents import expand_command
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.slash import background, project, sessions, undo, usage
from deepagents_cli.session.slash.command import SlashCommand, until_stopped
from deepagents_cli.text import one_line

logger = logging.getLogger(__name__)

COMMANDS: Mapping[str, SlashCommand] = {
    each.name: each
    for each in (*sessions.COMMANDS, *undo.COMMANDS, *background.COMMANDS, *usage.COMMANDS, *project.COMMANDS)
}


def list_commands(brought: Mapping[str, FileCommand]) -> dict[str, str]:
    """Describe all commands for help and completion; those of files come last, and replace none."""
    own = {each.name: [each.description, each.arguments] for each in COMMANDS.values()}
    further = {
        one_line(name): [one_line(each.description), one_line(each.hint)] for name, each in brought.items()
    }
    return {name: ": ".join(filter(None, texts)) for name, texts in {**own, **further, **own}.items()}


async def carry_out(talk: Conversation, order: Invoke | Save) -> None:
    """Carry out a command, or the writing of what it proposed, and send its result."""
    talk.is_commanded = True
    try:
        given = await (_save(talk, order) if isinstance(order, Save) else _run(talk, order))
    except Exception as error:
        # A command that fails says so, and the conversation goes on.
        if not is_for_people(error):
            logger.exception("The command failed.")
        given = Result(error=explain_error(error))
    finally:
        talk.is_commanded = False
    talk.say(given if isinstance(order, Save) else replace(given, id=order.id))


async def _run(talk: Conversation, order: Invoke) -> Result:
    name, arguments = order.name, order.arguments.strip()
    if command := COMMANDS.get(name):
        return await command.run(talk, arguments)
    place = talk.workplace
    if brought := place.setup.commands.get(name):
        expanding = expand_command(f"/{name} {arguments}", place.setup, place.policy)
        text = await until_stopped(talk, expanding)
        talk.made[text] = brought
        return Result(send=text)
    raise CommandError(f"There is no command /{one_line(name)}; /help lists them")


async def _save(talk: Conversation, order: Save) -> Result:
    write = talk.workplace.proposed.get(order.draft)
    if write is None:
        raise CommandError("Nothing was proposed that could be written")
    return Result(text=f"Written: {one_line(str(await to_thread(write, order.text)))}")
