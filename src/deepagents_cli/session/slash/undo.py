"""Take a conversation and its files back to an earlier message, and forth, and show what was changed."""

from __future__ import annotations

from datetime import date
from typing import Final

from deepagents.undo import Plan
from deepagents_cli.errors import CommandError
from deepagents_cli.protocol import Choice, Result
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.conversation.points import Point
from deepagents_cli.session.conversation.undo import What, describe_plan, quote, short
from deepagents_cli.session.slash.command import SlashCommand
from deepagents_cli.session.slash.usage import compact
from deepagents_cli.session.threads.driver import messages_in
from deepagents_cli.text import cut, fence

_LONGEST: Final = 80
"""Characters of a command that still runs."""
_YES: Final = "yes"
_NO: Final = "no"
_GOES_BACK: Final[dict[str, What]] = {"both": "both", "conversation": "conversation", "files": "files"}
_WHAT: Final = {
    "both": "conversation and files",
    "conversation": "the conversation alone; files stay as they are",
    "files": "the files alone; the conversation stays",
    "summary": "nothing goes back: what was said before it becomes a summary",
}


async def _rewind(talk: Conversation, arguments: str) -> Result:
    number, what, answer = [*arguments.split(), "", "", ""][:3]
    if arguments == _NO:
        return _leave(talk)
    talk.require_idle("go back")
    if not number:
        return await _list_points(talk)
    point = await talk.undo.find(number)
    if not what:
        rows = [Choice(f"{number} {each}", each, detail) for each, detail in _WHAT.items()]
        return Result(text=f"Message {quote(point)}", choices=rows)
    if what == "summary":
        messages = messages_in(await talk.driver.read())
        return await compact(talk, len(messages) - point.number + 1)
    if what not in _GOES_BACK:
        raise CommandError(f"{what!r} is none of {', '.join(_WHAT)}")
    return await _go_back(talk, point, _GOES_BACK[what], agreed=answer == _YES)


async def _go_back(talk: Conversation, point: Point, what: What, *, agreed: bool) -> Result:
    order = f"{point.number} {what} {_YES}"
    plan = talk.undo.take_shown(order) if agreed else None
    if plan is None:
        # Nothing happens that was not shown.
        plan = await talk.undo.plan(point)
        return await _show(talk, order, plan, what, f"Back to before message {quote(point)}", order)
    done = await talk.undo.go_back(point, plan, what)
    await talk.reread()
    typed = "" if what == "files" else point.text
    return Result(text=" ".join([*done, "/redo takes it back."]), typed=typed)


async def _undo(talk: Conversation, arguments: str) -> Result:
    if arguments:
        return await _rewind(talk, arguments)
    talk.require_idle("go back")
    return await _go_back(talk, (await talk.undo.points())[-1], "both", agreed=False)


async def _redo(talk: Conversation, arguments: str) -> Result:
    if arguments == _NO:
        return _leave(talk)
    talk.require_idle("go forth")
    rewind = await talk.undo.last_rewind()
    order = f"{rewind.rewind} {_YES}"
    plan = talk.undo.take_shown(order) if arguments == _YES else None
    if plan is None:
        plan = await talk.undo.plan_forth(rewind)
        title = f"Forth again, to where you went back to before message {rewind.message}"
        return await _show(talk, order, plan, "both" if rewind.moved else "files", title, _YES)
    done = await talk.undo.go_forth(rewind, plan)
    await talk.reread()
    return Result(text=" ".join(done))


async def _diff(talk: Conversation, number: str) -> Result:
    lines = await talk.undo.diff(number)
    if not lines:
        return Result(text="The agent has changed nothing" + (" there." if number else " in this session."))
    return Result(text=fence("\n".join(lines), "diff"))


async def _list_points(talk: Conversation) -> Result:
    points = await talk.undo.points()
    counts = await talk.undo.count(points)
    rows = [
        Choice(str(each.number), f"{each.number}. {short(each)}", f"{_time_of(each)}, {count}")
        for each, count in zip(points, counts, strict=True)
    ]
    return Result(choices=rows[::-1])


def _time_of(point: Point) -> str:
    return f"{point.at:%H:%M}" if point.at.date() == date.today() else f"{point.at:%m-%d %H:%M}"


async def _show(talk: Conversation, order: str, plan: Plan, what: What, title: str, agreed: str) -> Result:
    talk.undo.note_shown(order, plan)
    # It goes on, whatever goes back, and the agent may not know of it any more.
    running = [
        f"- Still runs, and may change files: `{cut(each.command, _LONGEST)}`; `/bg stop` ends it"
        for each in await talk.background.find_all()
        if each.exit_code is None
    ]
    text = "\n".join([title, "", *describe_plan(plan, what, talk.workplace.directory), *running])
    rows = [Choice(agreed, "do it"), Choice(_NO, "leave everything as it is")]
    return Result(text=text, choices=rows)


def _leave(talk: Conversation) -> Result:
    talk.undo.take_shown("")
    return Result(text="Nothing has changed.")


COMMANDS: Final = (
    SlashCommand(
        "rewind",
        "go back to before one of your messages: conversation, files, or both",
        "[MESSAGE] [both|conversation|files|summary]",
        _rewind,
    ),
    SlashCommand("undo", "take your last message back, with what it changed", "", _undo),
    SlashCommand("redo", "take the last going back back", "", _redo),
    SlashCommand(
        "diff", "show what was changed in this session, or by a message of yours", "[MESSAGE]", _diff
    ),
)
