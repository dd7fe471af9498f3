"""A result too large for the context moves to a file; a preview, the path and how to read on stay."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from deepagents._flow import Flow
from deepagents._text import preview
from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure

CHARACTERS_PER_TOKEN = 4
TOOLS_EXCLUDED_FROM_EVICTION = ("ls", "glob", "grep", "read_file", "edit_file", "write_file", "delete")

_NOTICE = """Tool result too large, so all of it was saved to the file {path}
Read it in parts with read_file, for example with offset=0 and limit=100, or search it with grep.
Its beginning and end:

{preview}"""


@dataclass(frozen=True, slots=True)
class Eviction:
    """Where large results go, and from which size on (in characters)."""

    files: Files
    threshold: int

    def of(self, result: ToolMessage | Command[Any]) -> Flow[ToolMessage | Command[Any]]:
        """Return the result with each large tool message replaced by its notice."""
        if isinstance(result, ToolMessage):
            return (yield from self._message(result))
        command: Any = result
        given: Any = command.update
        update = cast("dict[str, Any]", given if isinstance(given, dict) else {})
        if not isinstance(update.get("messages"), list):
            return result
        changed: list[Any] = []
        for message in cast("list[Any]", update["messages"]):
            is_tool = isinstance(message, ToolMessage)
            changed.append((yield from self._message(message)) if is_tool else message)
        return replace(command, update={**update, "messages": changed})

    def _message(self, message: ToolMessage) -> Flow[ToolMessage]:
        text, others = _split(message.content)
        if len(text) <= self.threshold:
            return message
        root = self.files.capabilities().artifacts_root.rstrip("/")
        path = f"{root}/large_tool_results/{_file_name(message.tool_call_id, text)}"
        try:
            yield from self.files.write(path, text, None)
        except ToolFailure:
            return message
        notice = _NOTICE.format(path=path, preview=preview(text))
        content: Any = [{"type": "text", "text": notice}, *others] if others else notice
        return message.model_copy(update={"content": content})


def _split(content: str | Sequence[str | dict[Any, Any]]) -> tuple[str, list[Any]]:
    if isinstance(content, str):
        return content, []
    texts: list[str] = []
    others: list[Any] = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        else:
            others.append(block)
    return "\n".join(texts), others


def _file_name(call_id: str, text: str) -> str:
    digest = hashlib.sha256(f"{call_id}\0{text}".encode(errors="surrogatepass")).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:60]
    return f"{readable}-{digest}" if readable else digest
