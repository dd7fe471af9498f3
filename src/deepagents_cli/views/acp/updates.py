"""Say in the words of the protocol what happens in a session; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, cast, get_args

from acp import helpers, schema

from deepagents import events
from deepagents.tools import specs_by_name
from deepagents_cli import protocol
from deepagents_cli.session.turns.steering import present_plan
from deepagents_cli.text import clean, cut, fence, one_line, without_colours

Update: TypeAlias = (
    schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.UserMessageChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.AvailableCommandsUpdate
    | schema.CurrentModeUpdate
    | schema.ConfigOptionUpdate
    | schema.SessionInfoUpdate
    | schema.UsageUpdate
)
Content: TypeAlias = (
    schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent
)

_SPECS: Final = specs_by_name()
_KINDS: Final[dict[str, schema.ToolKind]] = {
    "read": "read",
    "search": "search",
    "write": "edit",
    "delete": "delete",
    "run": "execute",
}
"""What a tool does to files, in the words of the protocol."""
_OTHER_KINDS: Final[dict[str, schema.ToolKind]] = {
    "web_fetch": "fetch",
    "web_search": "fetch",
    present_plan.name: "switch_mode",
}
_SHOWN_OTHERWISE: Final = frozenset({"write_todos", "read_todos"})
"""Tools whose effect is shown as a plan."""
_LONGEST_TITLE: Final = 80
_LONGEST: Final = 20_000
"""Characters of a result that are shown."""


def commands(known: dict[str, str]) -> schema.AvailableCommandsUpdate:
    """Return the slash commands: what each does, and behind a colon what may stand behind it."""
    listed: list[schema.AvailableCommand] = []
    for name, about in known.items():
        description, _, hint = about.partition(": ")
        given = schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=hint)) if hint else None
        listed.append(schema.AvailableCommand(name=name, description=description or name, input=given))
    return helpers.update_available_commands(listed)


def notice(text: str) -> schema.AgentMessageChunk:
    """Return what the person must know, apart from what the agent writes."""
    quoted = "\n".join(f"> {line}" for line in clean(text).split("\n"))
    return helpers.update_agent_message_text(f"\n\n{quoted}\n\n")


def answer(text: str) -> schema.AgentMessageChunk:
    """Return an answer that did not come in pieces."""
    return helpers.update_agent_message_text(sound(text))


def result(name: str, given: protocol.Result) -> schema.AgentMessageChunk:
    """Return what a slash command gave, as Markdown."""
    drawn = without_colours(given.ansi).strip("\n")
    parts = [given.text, f"```\n{drawn}\n```" if drawn else ""]
    for each in given.choices:
        words = [f"- `/{name} {each.value}`", each.label if each.label != each.value else "", each.detail]
        parts.append(" ".join(filter(None, words)))
    return answer(clean("\n".join(filter(None, parts)) or "Done."))


def offered(given: Sequence[schema.SessionConfigOptionSelect]) -> schema.ConfigOptionUpdate:
    """Return what may be chosen now, with what is chosen."""
    return schema.ConfigOptionUpdate(session_update="config_option_update", config_options=[*given])


def title(text: str) -> schema.SessionInfoUpdate:
    """Return the name of a session: the first line of what it began with."""
    name = cut(one_line(text.strip().partition("\n")[0]), _LONGEST_TITLE)
    return schema.SessionInfoUpdate(session_update="session_info_update", title=sound(name))


def run_ended(number: str, ran: protocol.Ran) -> schema.ToolCallProgress:
    """Return what a command of the person has printed, and how it has ended."""
    content = [fenced(f"{ran.output}\n[{ran.how}]".lstrip("\n"))]
    return helpers.update_tool_call(number, status="failed" if ran.failed else "completed", content=content)


def usage(status: protocol.Status) -> schema.UsageUpdate | None:
    """Return how full the window of the model is, where that is known."""
    if not status.context or status.in_context is None:
        return None
    cost = None if status.cost is None else schema.Cost(amount=status.cost, currency="USD")
    size = round(status.in_context / status.context)
    return schema.UsageUpdate(session_update="usage_update", used=status.in_context, size=size, cost=cost)


def past(message: protocol.PastMessage, directory: Path) -> list[schema.UserMessageChunk]:
    """Return what a person wrote in a session that is loaded: each file where it was named, pictures last."""
    text = sound(message.text)
    if message.who == "command":
        return [helpers.update_user_message_text(f"```\n{text}\n```")]
    files = {**message.files}
    named = "|".join(re.escape(f"@{each}") for each in sorted(files, key=len, reverse=True))
    blocks: list[Any] = []
    for part in filter(None, re.split(f"({named})", text) if named else [text]):
        name = part.removeprefix("@")
        is_file = name != part and name in files
        blocks.append(_held(name, files.pop(name), directory) if is_file else helpers.text_block(part))
    blocks += [_held(name, content, directory) for name, content in files.items()]
    blocks += [helpers.image_block(*each) for each in message.pictures]
    return [helpers.update_user_message(each) for each in blocks]


def _held(name: str, content: str, directory: Path) -> schema.EmbeddedResourceContentBlock:
    uri = name if "://" in name else (directory / name).as_uri()
    return helpers.resource_block(helpers.embedded_text_resource(uri, sound(content)))


def update_for(message: protocol.Happened) -> Update | None:
    """Return what an event changes in what is shown; `None` for what is not shown."""
    match message.event:
        case events.ToolCalled() as event:
            return _called(event, message) if is_shown(event.name) else None
        case events.ToolFinished() as event:
            return _finished(event, message) if is_shown(event.name) else None
        case events.Token() | events.Reasoning() | events.PlanChanged() | events.ApprovalGiven() as event:
            return _as_update(event)
        case _:
            return notice(message.line) if message.line else None


def _as_update(
    event: events.Token | events.Reasoning | events.PlanChanged | events.ApprovalGiven,
) -> Update | None:
    match event:
        case events.Token(agent=None, text=text):
            return answer(text)
        case events.Reasoning(agent=None, text=text):
            return helpers.update_agent_thought_text(sound(text))
        case events.PlanChanged(agent=None, todos=todos):
            return helpers.update_plan(_entry(each) for each in todos)
        case events.ApprovalGiven(decision="approve", tool_call_id=str(call_id)):
            return helpers.update_tool_call(call_id, status="in_progress")
        case _:
            return None


def in_progress(call_id: str, content: Content) -> schema.ToolCallProgress:
    """Return what is shown of a command that runs: what it has printed so far, or its terminal."""
    return helpers.update_tool_call(call_id, status="in_progress", content=[content])


def is_shown(name: str) -> bool:
    """Return whether calls of a tool are shown as such."""
    return name not in _SHOWN_OTHERWISE


def kind_of(name: str) -> schema.ToolKind:
    """Return what kind of tool this is."""
    spec = _SPECS.get(name)
    return _OTHER_KINDS.get(name) or _KINDS.get((spec and spec.effect) or "", "other")


def differences(changes: Sequence[protocol.FileChange]) -> list[Content]:
    """Return changes of files; one that is gone is empty now."""
    return [
        helpers.tool_diff_content(
            each.path, sound(each.after or ""), None if each.before is None else sound(each.before)
        )
        for each in changes
    ]


def fenced(text: str, *, whole: bool = False) -> Content:
    """Return a text as it is, for an editor that shows Markdown; of a long one the beginning."""
    shown = clean(text.rstrip("\n"))
    return written(fence(shown if whole else cut(shown, _LONGEST)))


def written(text: str) -> Content:
    """Return Markdown that stands with a call."""
    return helpers.tool_content(helpers.text_block(sound(text)))


def sound(text: str) -> str:
    """Return a text whose half characters, which no message can hold, are replaced."""
    return text.encode("utf-8", "replace").decode()


def _called(event: events.ToolCalled, message: protocol.Happened) -> Update:
    line = message.line or event.name
    return helpers.start_tool_call(
        event.call_id,
        sound(f"{event.agent}: {line}" if event.agent else line),
        kind=kind_of(event.name),
        status="pending",
        locations=[schema.ToolCallLocation(path=each) for each in message.paths],
        raw_input=_plain(event.args),
    )


def _finished(event: events.ToolFinished, message: protocol.Happened) -> Update:
    failed = event.status == "error" or bool(event.exit_code)
    content: list[Content] | None = differences(message.changes) or None
    spec = _SPECS.get(event.name)
    if failed or not (spec and spec.changes_files):
        content = [fenced(event.text)] if event.text.strip() else content
    return helpers.update_tool_call(
        event.call_id, status="failed" if failed else "completed", content=content
    )


def _entry(todo: events.Todo) -> schema.PlanEntry:
    known: tuple[str, ...] = get_args(schema.PlanEntryStatus)
    status = todo.status if todo.status in known else "pending"
    return helpers.plan_entry(sound(todo.content), status=cast("schema.PlanEntryStatus", status))


def _plain(value: Any) -> Any:
    """Return arguments as plain data without half characters."""
    match value:
        case str():
            return sound(value)
        case dict():
            return {_plain(key): _plain(each) for key, each in cast("dict[Any, Any]", value).items()}
        case list():
            return [_plain(each) for each in cast("list[Any]", value)]
        case _:
            return value
