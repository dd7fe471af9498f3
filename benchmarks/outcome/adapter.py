"""Let a model that only writes text call tools. Pure, and the same for every arm.

Whatever tools are given stand in the prompt by their schemas, and a reply is one JSON object: a call or an
answer. Nothing here knows a tool by its name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from deepagents_local.signatures import closed, grammar

Tools = Sequence[Mapping[str, Any]]
Turn = dict[str, str]

_LARGEST = 10**9
_DEEPEST = 3
"""How many lists and objects an argument may have in each other."""

_GUIDE = """\
Tools, each with the JSON schema of its arguments:
{tools}

Reply with one JSON object only. To use a tool: {{"tool": NAME, "arguments": {{...}}}}
When everything that was asked is done: {{"answer": TEXT}}"""


def write_turns(messages: Sequence[BaseMessage], tools: Tools) -> tuple[Turn, ...]:
    """Write a conversation as turns of text, with the tools in the system turn."""
    system = [message.text for message in messages if isinstance(message, SystemMessage)]
    if tools:
        system.append(_GUIDE.format(tools="\n".join(_dump(tool["function"]) for tool in tools)))
    spoken = [_turn(message) for message in messages if not isinstance(message, SystemMessage)]
    opening = {"role": "system", "content": "\n\n".join(system)}
    return tuple(_join([opening, *spoken] if system else spoken))


def write_grammar(tools: Tools) -> str | None:
    """Write the language of replies: a call of one of the tools with any arguments, or an answer."""
    if not tools:
        return None
    names = [tool["function"]["name"] for tool in tools]
    call = closed({"tool": {"enum": names}, "arguments": _object(_DEEPEST)})
    return grammar([call, closed({"answer": {"type": "string"}})])


def _object(depth: int) -> dict[str, Any]:
    """Describe any object whose numbers have an end: a small model may write noughts without one."""
    number = {"type": "number", "minimum": -_LARGEST, "maximum": _LARGEST}
    kinds: list[dict[str, Any]] = [{"type": ["string", "boolean", "null"]}, number]
    if depth:
        inner = _object(depth - 1)
        kinds += [{"type": "array", "items": inner["additionalProperties"]}, inner]
    return {"type": "object", "additionalProperties": {"anyOf": kinds}}


def read_reply(text: str) -> AIMessage:
    """Read a call or an answer; what is neither, as when it was cut off, is an answer as it stands."""
    try:
        reply = json.loads(text)
    except ValueError:
        return AIMessage(text)
    if not isinstance(reply, dict) or not reply.keys() & {"tool", "answer"}:
        return AIMessage(text)
    if "tool" not in reply:
        return AIMessage(str(reply["answer"]))
    call = {
        "name": reply["tool"],
        "args": reply["arguments"],
        "id": f"call_{uuid4().hex}",
        "type": "tool_call",
    }
    return AIMessage("", tool_calls=[call])


def _turn(message: BaseMessage) -> Turn:
    if isinstance(message, ToolMessage):
        return {"role": "user", "content": f"Result of {message.name or 'the tool'}:\n{_shown(message)}"}
    if not isinstance(message, AIMessage):
        return {"role": "user", "content": _shown(message)}
    calls = [_dump({"tool": call["name"], "arguments": call["args"]}) for call in message.tool_calls]
    return {"role": "assistant", "content": "\n".join(calls) or _dump({"answer": message.text})}


def _shown(message: BaseMessage) -> str:
    others = [block["type"] for block in message.content_blocks if block["type"] != "text"]
    return "\n".join(
        filter(None, [message.text, *(f"[{each}: this model reads text only]" for each in others)])
    )


def _join(turns: Sequence[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for turn in turns:
        if joined and joined[-1]["role"] == turn["role"]:
            joined[-1] = {**turn, "content": f"{joined[-1]['content']}\n\n{turn['content']}"}
        else:
            joined.append(turn)
    return joined


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
