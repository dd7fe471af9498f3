"""Write tools as one-line signatures for the prompt, and the grammar that forces an answer to be one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.utils.json_schema import dereference_refs

from deepagents._values import valueclass

TOOL = "tool"
ANSWER = "final_answer"
DESCRIPTION_LIMIT = 90
_LARGEST = 10**9

_FENCE = "```"
_BELOW = f"\n{_FENCE}\n"
_WITH_TEXT = "x-with-text"
_TEXTS = {"write_file": "content", "edit_file": "new_string"}
"""The argument of a tool that may stand below the call, as it is: small models escape quotes badly."""

_NOT_FOR_GRAMMARS = frozenset(
    {"title", "description", "default", "examples", "$schema", "$defs", "deprecated"}
)
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


@valueclass
class Call:
    """One tool call, as the model writes it."""

    name: str
    args: Mapping[str, Any]


def parameters(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, from its definition in the form that OpenAI made common."""
    schema: dict[str, Any] = tool["function"].get("parameters") or {}
    return dereference_refs(schema) if "$defs" in schema else schema


def name_of(tool: Mapping[str, Any]) -> str:
    """A tool's name."""
    return str(tool["function"]["name"])


def signature(tool: Mapping[str, Any]) -> str:
    """`name(arg: type, other: type = default) - first sentence`."""
    schema = parameters(tool)
    required = set(schema.get("required", ()))
    fields = ", ".join(
        _parameter(key, value, key in required)
        for key, value in schema.get("properties", {}).items()
        if "const" not in value
    )
    about = _first_sentence(str(tool["function"].get("description") or ""))
    return f"{name_of(tool)}({fields})" + (f" - {about}" if about else "")


def grammar(forms: Sequence[Mapping[str, Any]]) -> str:
    """The language of allowed replies: any of these objects, on one line, some with a text below them."""
    layout = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}

    def one_of(some: Sequence[Mapping[str, Any]]) -> str:
        return "%json " + json.dumps({"anyOf": some, "x-guidance": layout})

    alone = [form for form in forms if _WITH_TEXT not in form]
    above = [form for form in forms if _WITH_TEXT in form]
    rules = [f"{one_of(above)} TEXT"] * bool(above) + [one_of(alone)] * bool(alone)
    text = r"TEXT: /\n```\n(([^`\n][^\n]*)?\n)+```/"
    return "\n".join(["%llguidance {}", f"start: {' | '.join(rules)}", *[text] * bool(above)])


def answer_form() -> dict[str, Any]:
    """The schema of a final answer."""
    return closed({ANSWER: {"type": "string"}})


def call_form(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a call of this tool."""
    schema = parameters(tool)
    properties = {_key(name): _slim(value) for name, value in schema.get("properties", {}).items()}
    required = [_key(name) for name in schema.get("required", ())]
    ordered = {name: properties[name] for name in required if name in properties} | properties
    return closed({TOOL: {"const": name_of(tool)}, **ordered}, [TOOL, *required])


def closed(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def form_with_text(tool: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """The schema of a call on one of these files whose text stands below it."""
    return closed({TOOL: {"const": name_of(tool)}, "file_path": {"enum": list(paths)}}) | {_WITH_TEXT: True}


def can_stand_below(text: str) -> bool:
    """Whether a text cannot be mistaken for its end."""
    return not any(line.startswith("`") for line in text.split("\n"))


def write_call(call: Call) -> str:
    """A tool call in the form in which the model writes it."""
    text = call.args.get(_TEXTS["edit_file"])
    if call.name == "edit_file" and "\n" in str(call.args.get("old_string")).strip("\n"):
        # Of a whole file the model writes only what it becomes.
        head = _dump({TOOL: call.name, "file_path": call.args.get("file_path")})
        return f"{head}{_BELOW}{text}\n{_FENCE}"
    return _dump({TOOL: call.name, **{_key(name): value for name, value in call.args.items()}})


def write_answer(text: str) -> str:
    """A final answer in the form in which the model writes it."""
    return _dump({ANSWER: text})


def read_reply(text: str) -> Call | str | None:
    """A tool call, a final answer, or None where the text is neither, for example because it was cut off."""
    head, below, rest = text.partition(_BELOW)
    body, end, _ = rest.rpartition(f"\n{_FENCE}")
    try:
        found = json.loads(head)
    except ValueError:
        return None
    if not isinstance(found, dict) or (below and not end):
        return None
    reply = cast("dict[str, Any]", found)
    if ANSWER in reply:
        return str(reply[ANSWER])
    if TOOL not in reply:
        return None
    args = {_name(key): value for key, value in reply.items() if key != TOOL}
    return Call(name := str(reply[TOOL]), args | ({_TEXTS[name]: body} if below else {}))


def _key(name: str) -> str:
    return f"{TOOL}_" if name == TOOL else name


def _name(key: str) -> str:
    return TOOL if key == f"{TOOL}_" else key


def _slim(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_slim(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = cast("dict[str, Any]", schema)
    slim = {
        key: {name: _slim(inner) for name, inner in value.items()} if key == "properties" else _slim(value)
        for key, value in found.items()
        if key not in _NOT_FOR_GRAMMARS
    }
    # A small model that has begun a number may go on with noughts to the end of its answer.
    bounds = {"minimum": -_LARGEST, "maximum": _LARGEST} if slim.get("type") == "integer" else {}
    return bounds | slim


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> str:
    text = f"{_key(name)}: {_type(schema)}"
    return text if required else f"{text} = {_dump(schema.get('default'))}"


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(_dump(value) for value in schema["enum"])
    if "anyOf" in schema:
        kinds = [_type(kind) for kind in schema["anyOf"] if kind.get("type") != "null"]
        return "|".join(dict.fromkeys(kinds))
    return _TYPES.get(str(schema.get("type")), "any")


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    end = line.find(". ")
    line = line[:end] if end > 0 else line.rstrip(".")
    return line if len(line) <= DESCRIPTION_LIMIT else line[: DESCRIPTION_LIMIT - 1].rstrip() + "…"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
