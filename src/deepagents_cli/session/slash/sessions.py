"""Change sessions and modes."""

from __future__ import annotations

import time
from asyncio import to_thread
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from langchain_core.messages import BaseMessage, ToolMessage

from deepagents_cli.errors import CommandError
from deepagents_cli.protocol import Choice, Result
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.slash.command import SlashCommand
from deepagents_cli.session.slash.proposal import Proposal
from deepagents_cli.session.threads.driver import is_from_harness, messages_in
from deepagents_cli.session.threads.export import as_json, as_markdown, fork
from deepagents_cli.session.threads.sessions import Session, new_thread_id
from deepagents_cli.session.workplace.worktrees import begin_worktree, return_to
from deepagents_cli.text import one_line
from deepagents_cli.values import MODES

_MODES: Final = {
    "ask": "asks before it changes anything",
    "auto": "edits and confined commands go through; what leaves the sandbox asks",
    "plan": "changes nothing, and ends with a plan to approve",
    "full": "asks about nothing",
}
_LONGEST_LABEL: Final = 70
_WHO: Final = {"human": "you", "ai": "the agent"}


async def _mode(talk: Conversation, wanted: str) -> Result:
    if wanted in MODES:
        talk.set_mode(wanted)
        return Result(text=f"Mode {wanted}: {_MODES[wanted]}.")
    if wanted:
        raise CommandError(f"{wanted!r} is not a mode; write ask, auto, plan or full")
    return Result(choices=[Choice(each, each, detail) for each, detail in _MODES.items()])


async def _new(talk: Conversation, arguments: str) -> Result:
    talk.require_idle("begin a new session")
    await talk.enter(new_thread_id(), resumed=False)
    return Result()


async def _resume(talk: Conversation, wanted: str) -> Result:
    sessions, directory = talk.workplace.sessions, talk.workplace.directory
    # Those of the main tree and its worktrees belong together.
    if made := await to_thread(sessions.find_origin, directory):
        directory = made[0]
    if wanted:
        talk.require_idle("open another session")
        found = await to_thread(sessions.find, wanted, directory)
        if found.id == talk.thread:
            return Result(text="This session is open.")
        place, notice = await to_thread(return_to, sessions, found)
        await talk.enter(found.id, resumed=True, directory=place)
        return Result(text=notice)
    listed = await to_thread(sessions.find_all, directory)
    others = [each for each in listed if each.id != talk.thread]
    if not others:
        return Result(text="There is no other session in this directory.")
    return Result(
        choices=[
            Choice(
                each.id,
                one_line(each.name) or each.id,
                time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used))
                + (f", worktree {each.branch}" if each.branch else ""),
            )
            for each in others
        ]
    )


async def _worktree(talk: Conversation, name: str) -> Result:
    talk.require_idle("begin a session in a worktree")
    sessions, thread = talk.workplace.sessions, new_thread_id()
    place, notice = await to_thread(begin_worktree, sessions, talk.workplace.directory, thread, name)
    await talk.enter(thread, resumed=False, directory=place)
    return Result(text=f"A new session, in the {notice}." if notice else f"A new session, in {place}.")


async def _rename(talk: Conversation, name: str) -> Result:
    if not name:
        raise CommandError("Write the new name behind /rename")
    sessions, directory = talk.workplace.sessions, talk.workplace.directory
    # Before its first message a session is not in the list yet.
    await to_thread(sessions.note, talk.thread, directory, name)
    await to_thread(sessions.rename, talk.thread, name)
    talk.name = one_line(name)
    return Result(text=f"This session is now called {talk.name}.")


async def _fork(talk: Conversation, at: str) -> Result:
    messages = await _messages(talk)
    if not at:
        # A copy can end where a step did, which is never between a call and its result.
        ends = [
            (number, each)
            for number, each in enumerate(messages, 1)
            if not getattr(each, "tool_calls", None) and not isinstance(each, ToolMessage)
        ]
        return Result(
            choices=[
                Choice(
                    str(number),
                    f"{number}. {one_line(each.text)[:_LONGEST_LABEL]}",
                    "the harness" if is_from_harness(each) else _WHO.get(each.type, each.type),
                )
                for number, each in reversed(ends)
            ]
        )
    if not at.isdigit():
        raise CommandError(f"{at!r} is not a number of a message; /fork alone lists them")
    talk.require_idle("fork the session")
    copy = await to_thread(fork, talk.workplace.sessions, _current(talk), int(at))
    await talk.enter(copy, resumed=True)
    return Result(text=f"This is a copy up to message {at}; the session before is kept.")


async def _export(talk: Conversation, name: str) -> Result:
    path = Path(name or f"session-{talk.thread}.md")
    messages = await _messages(talk)
    write = as_json if path.suffix == ".json" else as_markdown
    proposal = await to_thread(Proposal.of, talk.workplace.directory / path)
    return proposal.show(talk, write(_current(talk), messages))


async def _messages(talk: Conversation) -> Sequence[BaseMessage]:
    messages = messages_in(await talk.driver.read())
    if not messages:
        raise CommandError("Nothing was said in this session yet")
    return messages


def _current(talk: Conversation) -> Session:
    return talk.workplace.sessions.find(talk.thread)


COMMANDS: Final = (
    SlashCommand("mode", "show or change what is asked about", "[ask|auto|plan|full]", _mode),
    SlashCommand("new", "begin a new session", "", _new),
    SlashCommand("worktree", "begin a new session in a git worktree of its own", "[NAME]", _worktree),
    SlashCommand("sessions", "list the sessions of this directory, to open one", "[NAME]", _resume),
    SlashCommand("resume", "open another session", "[NAME]", _resume),
    SlashCommand("rename", "give this session another name", "NAME", _rename),
    SlashCommand("fork", "go on from an earlier message in a copy", "[MESSAGE]", _fork),
    SlashCommand("export", "write this session as Markdown, or as JSON", "[FILE]", _export),
)
