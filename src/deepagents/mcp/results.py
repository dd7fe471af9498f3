"""Turn what servers return into what LangChain's messages hold."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from typing import Any, Final, cast

from jsonschema import Draft202012Validator
from mcp import types
from referencing import Registry

from deepagents.errors import ToolFailure
from deepagents.mcp.calls import MOST_OF_ERROR, describe
from deepagents.mcp.entries import ServerEntry
from deepagents.mcp.offered import Offered, measure, storable
from deepagents.mcp.tools import CallResult

_MOST_CHECKS: Final = 200_000
"""Values of a result times those of its schema; each such pair takes some 3 microseconds at most."""
_ENDLESS: Final = frozenset(
    {"pattern", "patternProperties", "uniqueItems", "$schema", "$id", "$dynamicRef", "$recursiveRef"}
)
_TURNED: Final = frozenset({"not", "oneOf", "if"})
_RESTS: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+")
NOTHING: Final = "The tool returned nothing."


def read_result(entry: ServerEntry, tool: str, result: types.CallToolResult) -> CallResult:
    """Return what a tool returned.

    Raises:
        ToolFailure: `tool_failed`, with the words of the tool, where it says that it failed.
    """
    content = read_content(result.content, result.structured_content)
    if result.is_error:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "\n".join(each["text"] for each in blocks if each["type"] == "text")
        raise ToolFailure(
            "tool_failed", describe(entry, text, MOST_OF_ERROR) or f"{tool!r} failed without a reason"
        )
    return CallResult(content, {"structured_content": storable(result.structured_content)})


def check_output(entry: ServerEntry, tool: Offered, result: types.CallToolResult) -> None:
    """Check the structured content of a result against the schema that its tool has promised.

    A result that is large for its schema is not checked: the server could let this compute for hours.

    Raises:
        ToolFailure: `remote_failed`, where the promise is broken.
    """
    given = result.structured_content
    if tool.output is None or result.is_error:
        return
    if given is None:
        raise ToolFailure("remote_failed", f"{_promised(entry, tool)}, and returned no structured content")
    if measure(tool.output) * _count(given) > _MOST_CHECKS:
        return
    plain = _without_endless(tool.output)
    try:
        # An empty registry: nothing is fetched.
        validator: Any = Draft202012Validator(plain, registry=Registry())
        found = next(validator.iter_errors(given), None)
    # A schema that is none promises nothing. What a server writes in it decides what is raised.
    except Exception:  # noqa: BLE001
        return
    if found is not None:
        where = "/".join(map(str, found.absolute_path))
        why = describe(entry, f"{where}: {found.message}", MOST_OF_ERROR)
        raise ToolFailure("remote_failed", f"{_promised(entry, tool)}, and returned another: {why}")


def _promised(entry: ServerEntry, tool: Offered) -> str:
    return f"the MCP server {entry.name!r} promised an output of another form for {tool.name!r}"


def _count(value: Any) -> int:
    """Count the values in a value of JSON, as far as it matters."""
    left, number = [value], 0
    while left and number <= _MOST_CHECKS:
        each = left.pop()
        number += 1
        if isinstance(each, dict):
            left += cast("dict[str, Any]", each).values()
        elif isinstance(each, list):
            left += cast("list[Any]", each)
    return number


def _without_endless(value: Any) -> Any:
    """Return a schema without what can be computed for ever: patterns, and comparing all with all."""
    if isinstance(value, list):
        return [_without_endless(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    kept: dict[str, Any] = {}
    for key, each in given.items():
        plain = _without_endless(each)
        # What is an object is a property of that name.
        is_endless = key in _ENDLESS and (key == "patternProperties" or not isinstance(each, dict))
        # Where less is asked for inside of these or beside them, they refuse more.
        refuses_more = (key in _TURNED and plain != each) or (key in _RESTS and "patternProperties" in given)
        if not (is_endless or refuses_more):
            kept[key] = plain
    return kept


def read_content(content: Sequence[Any], structured: Any) -> str | list[dict[str, Any]]:
    """Return content of a server as text where all of it is, else as blocks."""
    blocks = [read_block(each) for each in content]
    if not any(block.get("text") or block["type"] != "text" for block in blocks):
        return NOTHING if structured is None else json.dumps(structured, ensure_ascii=False)
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return blocks


def read_block(given: Any) -> dict[str, Any]:
    """Return one block; a link is a text that names it, and nothing is fetched."""
    match given:
        case types.TextContent(text=text):
            return {"type": "text", "text": text}
        case types.ImageContent(data=data, mime_type=kind) | types.AudioContent(data=data, mime_type=kind):
            return _media(data, kind)
        case types.EmbeddedResource(resource=resource):
            return read_resource(resource)
        case types.ResourceLink(uri=uri, name=name, description=description):
            about = f": {description}" if description else ""
            return {"type": "text", "text": f"[resource {name} at {uri}{about}]"}
        case _:
            return {"type": "text", "text": f"[content of a kind that is not known: {type(given).__name__}]"}


def read_resource(resource: Any) -> dict[str, Any]:
    """Return what is in a resource as a block."""
    if isinstance(resource, types.TextResourceContents):
        return {"type": "text", "text": resource.text}
    return _media(resource.blob, resource.mime_type or "application/octet-stream")


def _media(data: str, kind: str) -> dict[str, Any]:
    try:
        base64.b64decode(data, validate=True)
        is_right = bool(_MEDIA_TYPE.fullmatch(kind))
    except (binascii.Error, ValueError):
        is_right = False
    if not is_right:
        # A provider would refuse the whole request, and with it end the run.
        return {"type": "text", "text": "[data that is not valid base64, or of a kind that is not valid]"}
    family = kind.partition("/")[0]
    name = family if family in ("image", "audio", "video") else "file"
    return {"type": name, "base64": data, "mime_type": kind}
