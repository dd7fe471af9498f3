"""Turn what servers return into what LangChain's messages hold."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from mcp import types

from deepagents.errors import ToolFailure
from deepagents.mcp.calls import MOST_OF_ERROR, describe
from deepagents.mcp.entries import ServerEntry
from deepagents.mcp.tools import CallResult

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
            "tool_failed", describe(entry, text, MOST_OF_ERROR) or f"{tool} failed without a reason"
        )
    return CallResult(content, {"structured_content": result.structured_content})


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
