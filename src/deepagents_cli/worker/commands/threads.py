"""Commands about threads and modes."""

from __future__ import annotations

from typing import Final

from deepagents_cli.protocol import MODES
from deepagents_cli.threads import new_thread_id
from deepagents_cli.worker.commands.parts import Answer, SlashCommand, Talk

_MODES: Final = {
    "ask": "asks before it changes anything",
    "auto": "edits and confined commands go through; what leaves the sandbox asks",
    "plan": "changes nothing, and ends with a plan to approve",
    "full": "asks about nothing",
}


async def _mode(talk: Talk, wanted: str) -> Answer:
    if wanted in MODES:
        talk.set_mode(wanted)
        return {"text": f"Mode {wanted}: {_MODES[wanted]}."}
    choices = [
        {"value": each, "label": each, "detail": detail, "usable": True} for each, detail in _MODES.items()
    ]
    return {"choices": choices}


async def _new(talk: Talk, arguments: str) -> Answer:
    talk.require_idle("begin a new session")
    await talk.enter(new_thread_id(), resumed=False)
    return {}


COMMANDS: Final = (
    SlashCommand("mode", "show or change what is asked about", "[ask|auto|plan|full]", _mode),
    SlashCommand("new", "begin a new session", "", _new),
)
