"""What one agent moves out of its context and its state, and from which size on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from langchain_core.messages import AnyMessage, ToolMessage

from deepagents.backends.calls import Files
from deepagents.middleware._base import Request, ToolResult
from deepagents.middleware.filesystem.blobs import Blobs, lands_in_state
from deepagents.middleware.filesystem.eviction import TOOLS_EXCLUDED_FROM_EVICTION, Eviction
from deepagents.middleware.filesystem.in_result import over_messages
from deepagents.middleware.filesystem.long_messages import LongMessages
from deepagents.middleware.filesystem.outgoing import Notables, Outgoing
from deepagents.tools._tool import CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Moving:
    """Sizes in tokens; `None` or 0 moves nothing. What may not be read back is not shortened."""

    files: Files
    may_read: Callable[[str], bool]
    result_tokens: int | None
    message_tokens: int | None
    offloads: bool
    known: Notables

    async def out_of_request(self, request: Request) -> tuple[Request, list[AnyMessage]]:
        """Return the request as the model is to see it, and the messages that state is to keep from it."""
        outgoing = Outgoing(self.files, self._long_messages(), self._keeps_blobs(), self.known)
        return await outgoing.prepared(request)

    async def out_of_result(self, tool: str, result: ToolResult) -> ToolResult:
        """Return what a tool returned, with large texts and the bytes of media moved to files."""
        if tool == "read_file" and self._keeps_blobs():
            result = await over_messages(result, Blobs(self.files).moved_out)
        limit = self.result_tokens
        if not limit or (tool in TOOLS_EXCLUDED_FROM_EVICTION and not _failed(result)):
            return result
        return await Eviction(self.files, limit * CHARACTERS_PER_TOKEN, self.may_read).of(result)

    def _long_messages(self) -> LongMessages | None:
        root = self.files.capabilities().artifacts_root.rstrip("/")
        if not self.message_tokens or not self.may_read(f"{root}/conversation_history/any.md"):
            return None
        return LongMessages(self.files, self.message_tokens * CHARACTERS_PER_TOKEN)

    def _keeps_blobs(self) -> bool:
        return self.offloads and not lands_in_state(self.files)


def _failed(result: ToolResult) -> bool:
    """Tell whether a call failed: arguments that were refused are repeated in the answer, however long."""
    return isinstance(result, ToolMessage) and result.status == "error"
