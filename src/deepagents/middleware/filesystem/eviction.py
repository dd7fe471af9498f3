"""A result too large for the context moves to a file; a preview, the path and how to read on stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from deepagents._text import preview
from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.middleware._offload import large_result_path, moved_notice, parts, saved, with_text
from deepagents.middleware.filesystem.in_result import over_messages

TOOLS_EXCLUDED_FROM_EVICTION = ("ls", "glob", "grep", "read_file", "edit_file", "write_file", "delete")

OUT_OF_REACH = """Tool result too large to show, and rules keep the file that it was saved to from being read.
Ask for less. Its beginning and end:

{content_sample}"""


@dataclass(frozen=True, slots=True)
class Eviction:
    """Where large results go, and from which size on (in characters)."""

    files: Files
    threshold: int
    may_read: Callable[[str], bool] = field(default=lambda _: True)

    async def of(self, result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
        """Return the result with each large tool message replaced by its notice."""
        return await over_messages(result, self._message)

    async def _message(self, message: Any) -> Any:
        if not isinstance(message, ToolMessage):
            return message
        text, others = parts(message.content)
        if len(text) <= self.threshold:
            return message
        path = large_result_path(self.files, message.tool_call_id, text)
        try:
            await saved(self.files, path, text)
        except ToolFailure:
            return message
        may_read = self.may_read(path)
        notice = moved_notice(path, text) if may_read else OUT_OF_REACH.format(content_sample=preview(text))
        return message.model_copy(update={"content": with_text(notice, others)})
