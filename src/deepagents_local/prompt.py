"""Write a conversation as the plain turns that a small model reads well. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from deepagents_local.signatures import (
    ANSWER,
    TOOL,
    Call,
    name_of,
    signature,
    write_answer,
    write_call,
)

Role = Literal["system", "user", "assistant"]
Tools = Sequence[Mapping[str, Any]]

REMINDER_LIMIT = 600

_EXAMPLES = """

Example: in sky.txt say red instead of blue, and add the line Good night. at the end.
{"tool": "read_file", "file_path": "/sky.txt"}
```
# Sky

The sky is blue.
```
{"tool": "edit_file", "file_path": "/sky.txt"}
```
# Sky

The sky is red.
Good night.
```
{"final_answer": "Done: /sky.txt says red, and Good night. at the end."}

Example: what colour is the sea in sea.txt?
{"tool": "read_file", "file_path": "/sea.txt"}
```
The sea is green.
```
{"final_answer": "The sea is green."}"""

_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
_SPECIAL = re.compile(r"<\|(\w+)\|>")


def turns(messages: Sequence[BaseMessage], tools: Tools, *, remind: bool) -> tuple[dict[str, str], ...]:
    """The conversation with the tools in the system turn; a turn never changes once it was sent."""
    system = [text_of(message) for message in messages if isinstance(message, SystemMessage)]
    if tools:
        system.append(guide(tools))
    spoken = _make_turns(messages, structured=bool(tools), remind=remind and bool(tools))
    opening: list[tuple[Role, str]] = [("system", "\n\n".join(filter(None, system)))]
    return tuple(
        {"role": role, "content": _SPECIAL.sub(r"<| \1 |>", text)}
        for role, text in _join([turn for turn in opening + spoken if turn[1]])
    )


def guide(tools: Tools) -> str:
    """What the model must know to call tools."""
    lines = "\n".join(signature(tool) for tool in tools)
    examples = _EXAMPLES if any(name_of(tool) == "edit_file" for tool in tools) else ""
    return (
        f"Tools:\n{lines}\n\n"
        f'Reply with one JSON object only: {{"{TOOL}": NAME, its arguments}} to use a tool, '
        f'or {{"{ANSWER}": TEXT}} when everything that was asked is done.{examples}'
    )


def text_of(message: BaseMessage) -> str:
    """The text of a message; what is not text is named in its place."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(_block_text(block) for block in message.content)


def _block_text(block: str | dict[Any, Any]) -> str:
    if isinstance(block, str):
        return block
    if "text" in block:
        return str(block["text"])
    return f"[{block.get('type', 'content')} left out: this model reads text only]"


def _make_turns(messages: Sequence[BaseMessage], *, structured: bool, remind: bool) -> list[tuple[Role, str]]:
    spoken: list[tuple[Role, str]] = []
    task = ""
    for message in messages:
        if isinstance(message, SystemMessage):
            continue
        if isinstance(message, AIMessage):
            spoken.append(("assistant", _render_turn(message, structured)))
        elif isinstance(message, ToolMessage):
            spoken.append(("user", _result(message, task if remind else "")))
        else:
            task = text_of(message)
            spoken.append(("user", task))
    return spoken


def _render_turn(message: AIMessage, structured: bool) -> str:
    calls = [write_call(Call(call["name"], call["args"])) for call in message.tool_calls]
    text = text_of(message)
    if text and not calls:
        return write_answer(text) if structured else text
    return "\n".join(filter(None, [text, *calls]))


def _result(message: ToolMessage, task: str) -> str:
    text = text_of(message)
    if message.name == "read_file":
        text = f"```\n{_LINE_NUMBER.sub('', text)}\n```"
    text = f"Result of {message.name or 'the tool'}:\n{text}"
    if not task:
        return text
    asked = task if len(task) <= REMINDER_LIMIT else task[:REMINDER_LIMIT] + " …"
    return f"{text}\n\nThe task is: {asked}\nWhat is the next JSON object?"


def _join(spoken: Sequence[tuple[Role, str]]) -> list[tuple[Role, str]]:
    joined: list[tuple[Role, str]] = []
    for role, text in spoken:
        if joined and joined[-1][0] == role:
            joined[-1] = (role, f"{joined[-1][1]}\n\n{text}")
        else:
            joined.append((role, text))
    return joined
