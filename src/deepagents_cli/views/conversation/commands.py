"""Read slash commands as they are typed: the screen's own, those of the worker, and what /help shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deepagents_cli.views.conversation.transcript import Block

OWN_COMMANDS: Final = {
    "clear": "clear the screen, and begin a new session; the old one is kept",
    "help": "show the commands and keys",
    "result": "show all of what the last call has returned, or one so many before it: [NUMBER]",
    "theme": "choose colours for a light or a dark terminal, or none: [light|dark|none]",
    "quit": "leave; the session can be continued",
}
_KEYS: Final = {
    "Enter": "send; while the agent works, it reads what you send at its next step",
    "! COMMAND": "run it at once; the agent reads what it prints at its next step",
    "Alt-Enter, Ctrl-J, \\ Enter": "begin a new line",
    "Up": "take back what waits, else the history",
    "Ctrl-R": "search the history",
    "Tab": "complete a /command, an @file, or a path behind !",
    "Shift-Tab": "go to the next mode: ask, auto, plan",
    "Ctrl-O": "show all of what the last call has returned, again of the one before",
    "Ctrl-V": "attach the picture that is in the clipboard",
    "Esc": "stop your command, or the present step; what is done is kept",
    "Esc twice on an empty line": "go back to before one of your messages",
    "Ctrl-L": "clear the screen",
    "Ctrl-C twice, Ctrl-D": "leave",
}
_ALIASES: Final = {"exit": "quit", "q": "quit", "?": "help"}


def read_command(text: str) -> tuple[str, str] | None:
    """Return the name and the arguments of a command; a path such as /etc/hosts is none."""
    first, *arguments = text.split(maxsplit=1) or [""]
    name = first.removeprefix("/")
    if not text.startswith("/") or not name or "/" in name:
        return None
    return _ALIASES.get(name, name), "".join(arguments).strip()


def show_help(commands: Mapping[str, str]) -> list[Block]:
    """Show the commands and the keys."""
    named = {f"/{name}": text for name, text in sorted(commands.items())}
    return [
        Block("terms", "\n".join(f"{term}\t{text}" for term, text in terms.items()))
        for terms in (named, _KEYS)
    ]
