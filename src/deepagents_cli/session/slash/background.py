"""List, read and stop the commands that run in the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deepagents_cli.errors import CommandError
from deepagents_cli.protocol import Choice, Result
from deepagents_cli.session.conversation.background import Listed
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.slash.command import SlashCommand
from deepagents_cli.text import clean, cut, one_line, short_time

_MOST_LINES: Final = 200
_LONGEST: Final = 80
"""Characters of a command, and of its last line."""


async def _background(talk: Conversation, arguments: str) -> Result:
    verb, _, named = arguments.partition(" ")
    listed = await talk.background.find_all()
    if verb not in ("", "read", "stop"):
        raise CommandError(f"{one_line(verb)!r} is not known here; write /bg, /bg read ID or /bg stop ID")
    if verb == "stop":
        listed = [each for each in listed if each.exit_code is None]
    if not listed:
        return Result(text="No command runs in the background.")
    if not verb:
        return Result(ansi="\n".join(line for each in listed for line in _describe(each)))
    if not named:
        rows = [
            Choice(f"{verb} {each.id}", f"{each.id} {cut(each.command, _LONGEST)}", _how(each))
            for each in listed
        ]
        return Result(choices=rows)
    number = _find(listed, named.strip())
    status = await (talk.background.stop(number) if verb == "stop" else talk.background.read(number))
    lines = clean(status.output.rstrip("\n")).split("\n")
    left_out = len(lines) > _MOST_LINES or status.left_out > 0
    shown = ["... (what it printed before is left out)"] * left_out + lines[-_MOST_LINES:]
    how = "It runs." if status.exit_code is None else f"It ended with exit code {status.exit_code}."
    return Result(ansi="\n".join([*shown, how]))


def _find(listed: Sequence[Listed], named: str) -> str:
    """Return the id of the command that is meant; its number at the end is enough."""
    found = [each.id for each in listed if named == each.id or each.id.endswith(f"-{named}")]
    if len(found) != 1:
        raise CommandError(
            f"There is no command {one_line(named)!r}; known are {', '.join(each.id for each in listed)}"
        )
    return found[0]


def _describe(listed: Listed) -> list[str]:
    first = f"{listed.id}  {_how(listed)}  {cut(listed.command, _LONGEST)}"
    return [first, f"    {cut(listed.last, _LONGEST)}"] if listed.last else [first]


def _how(listed: Listed) -> str:
    if listed.exit_code is not None:
        return f"ended with exit code {listed.exit_code}"
    return f"runs for {short_time(listed.seconds)}"


COMMANDS: Final = (
    SlashCommand(
        "bg", "list the commands in the background, read or stop one", "[read|stop] [ID]", _background
    ),
)
