"""A person's message too large for the context is kept in a file; each request shows how it begins."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from langchain_core.messages import AnyMessage, HumanMessage

from deepagents._text import preview
from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.middleware._history import shows_media
from deepagents.middleware._offload import parts, saved, with_text
from deepagents.tools._tool import READ_ON

TAG: Final = "lc_evicted_to"
NOTICE: Final = f"""Message too large, so all of it was saved to the file {{file_path}}
{READ_ON}
Its beginning and end:

{{content_sample}}"""


@dataclass(frozen=True, slots=True)
class LongMessages:
    """Where large messages of people go, and from which size on (in characters)."""

    files: Files
    threshold: int

    async def newly_long(
        self, messages: Sequence[AnyMessage], open_turn: Sequence[AnyMessage]
    ) -> dict[int, AnyMessage]:
        """Save the large messages of the open turn, and those whose tag is not ours.

        Returned are messages by `id()`, tagged with where they are.
        """
        tagged: dict[int, AnyMessage] = {}
        unseen = set(map(id, open_turn))
        for message in messages:
            if not isinstance(message, HumanMessage) or shows_media(message) or _is_tagged(message):
                continue
            if id(message) in unseen or TAG in message.additional_kwargs:
                changed = await self._saved(message)
                if changed is not None:
                    tagged[id(message)] = changed
        return tagged

    async def _saved(self, message: HumanMessage) -> HumanMessage | None:
        text, _ = parts(message.content)
        if len(text) <= self.threshold:
            return None
        root = self.files.capabilities().artifacts_root.rstrip("/")
        message_id = message.id or uuid.uuid4().hex
        path = f"{root}{_place(message_id, text)}"
        try:
            await saved(self.files, path, text)
        except ToolFailure:
            return None
        marks = {**message.additional_kwargs, TAG: path}
        return message.model_copy(update={"additional_kwargs": marks, "id": message_id})


@lru_cache(maxsize=16)
def _place(message_id: str, text: str) -> str:
    """Name the file of a message, the same for each attempt, and not to be had for another text."""
    digest = hashlib.sha256(f"{message_id}\0{text}".encode(errors="surrogatepass")).hexdigest()
    return f"/conversation_history/{digest[:32]}.md"


@lru_cache(maxsize=16)
def _notice(path: str, text: str) -> str:
    return NOTICE.format(file_path=path, content_sample=preview(text))


def shortened(messages: list[AnyMessage]) -> list[AnyMessage]:
    """Return the messages with a notice in the place of each text that was saved to a file."""
    return [_noticed(message) if _is_tagged(message) else message for message in messages]


def _is_tagged(message: AnyMessage) -> bool:
    """Tell whether a message says where it was saved, in a tag that fits its text."""
    path: Any = message.additional_kwargs.get(TAG) if isinstance(message, HumanMessage) else None
    if not isinstance(path, str):
        return False
    return path.endswith(_place(message.id or "", parts(message.content)[0]))


def _noticed(message: AnyMessage) -> AnyMessage:
    marks: dict[str, Any] = message.additional_kwargs
    text, others = parts(message.content)
    return message.model_copy(update={"content": with_text(_notice(marks[TAG], text), others)})
