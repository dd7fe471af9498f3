"""Keep a small model on its task, by rules over the conversation so far. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from deepagents._values import field, valueclass
from deepagents.middleware import is_from_person
from deepagents_local.seen import edit_forms, write_forms
from deepagents_local.signatures import answer_form, call_form, name_of, parameters

Tools = Sequence[Mapping[str, Any]]


_PLAIN: Mapping[str, tuple[str, ...]] = {
    "read_file": ("file_path", "offset"),
    "edit_file": ("file_path", "old_string", "new_string"),
    "glob": ("pattern",),
    "grep": ("pattern",),
}
# What these tools of the library say then.
_NOTHING = ("No matches found", "No files found")
_FIXED: Mapping[str, Mapping[str, Any]] = {"grep": {"output_mode": "content"}}


@valueclass
class Habits:
    """Each rule can be turned off for a model that does not need it."""

    remind: bool = True
    """Repeat the task after each tool result: small models lose sight of it."""
    plain_tools: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _PLAIN)
    """Of these tools offer these arguments only: small models fill in whatever is optional."""
    fixed: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _FIXED)
    """Of these tools these arguments have these values, where the tool has them."""
    look_first: tuple[str, ...] = ("ls", "read_file", "glob", "grep")
    """The first reply calls one of these, where offered: small models guess names and contents."""
    edit_shown_lines: bool = True
    """`edit_file` replaces a whole line that `read_file` has shown: small models copy badly."""
    write_named_files: bool = True
    """Where the request names files, `write_file` makes only those of them that are new: small models
    overwrite what they should edit."""
    try_again: bool = True
    """No final answer straight after a call that failed or found nothing: small models give up at once."""
    stop_repeats: bool = True
    """A tool that was called twice, word for word, is not offered again; after two such repeats only the
    final answer is: small models go in circles."""


def offer_tools(tools: Tools, habits: Habits) -> Tools:
    """The tools as this model gets to see them."""
    return [_plain(tool, habits) for tool in tools]


def find_forms(messages: Sequence[BaseMessage], tools: Tools, habits: Habits) -> list[dict[str, Any]]:
    """The forms that the next reply may take."""
    recent = _since_last_request(messages)
    calls = [(call["name"], call["args"]) for message in recent for call in _calls(message)]
    looking = [tool for tool in tools if name_of(tool) in habits.look_first]
    if not calls and looking:
        return [call_form(tool) for tool in looking]
    repeated = [call[0] for index, call in enumerate(calls) if call in calls[:index]]
    if habits.stop_repeats and len(repeated) > 1:
        return [answer_form()]
    left = [tool for tool in tools if not (habits.stop_repeats and name_of(tool) in repeated)]
    forms = [form for tool in left for form in _forms(messages, tool, habits)]
    in_vain = isinstance(last := messages[-1], ToolMessage) and (
        last.status == "error" or last.text.startswith(_NOTHING)
    )
    return forms if forms and in_vain and habits.try_again else [*forms, answer_form()]


def _plain(tool: Mapping[str, Any], habits: Habits) -> Mapping[str, Any]:
    schema = parameters(tool)
    known: Mapping[str, Any] = schema.get("properties", {})
    names = habits.plain_tools.get(name_of(tool), tuple(known))
    fixed = {
        name: {"const": value} for name, value in habits.fixed.get(name_of(tool), {}).items() if name in known
    }
    kept = {name: value for name, value in known.items() if name in names} | fixed
    # What may be left out for another form of the call is needed where that is not offered.
    is_plain = name_of(tool) in habits.plain_tools
    also = [name for name in kept if name in fixed or (is_plain and "default" not in kept[name])]
    required = [name for name in kept if name in schema.get("required", ()) or name in also]
    function = {**tool["function"], "parameters": {**schema, "properties": kept, "required": required}}
    return {**tool, "function": function}


def _forms(messages: Sequence[BaseMessage], tool: Mapping[str, Any], habits: Habits) -> list[dict[str, Any]]:
    if habits.edit_shown_lines and name_of(tool) == "edit_file":
        return edit_forms(tool, messages)
    if habits.write_named_files and name_of(tool) == "write_file":
        return write_forms(tool, messages)
    return [call_form(tool)]


def _since_last_request(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    starts = [index for index, message in enumerate(messages) if is_from_person(message)]
    return messages[starts[-1] :] if starts else messages


def _calls(message: BaseMessage) -> Sequence[Mapping[str, Any]]:
    return message.tool_calls if isinstance(message, AIMessage) else ()
