"""A person's message too large for the context is kept in a file; each request shows how it begins."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AnyMessage, HumanMessage

from deepagents._flow import Flow
from deepagents._text import preview
from deepagents.backends.calls import Files
from deepagents.errors import ToolFailure
from deepagents.middleware._turns import open_turn, shows_media
from deepagents.middleware.filesystem.eviction import parts, saved, with_text
from deepagents.tools._tool import READ_ON

TAG: Final = "lc_evicted_to"
PREVIEW: Final = "lc_evicted_preview"
NOTICE: Final = f"""Message too large, so all of it was saved to the file {{file_path}}
{READ_ON}
Its beginning and end:

{{content_sample}}"""


@dataclass(frozen=True, slots=True)
class LongMessages:
    """Where large messages of people go, and from which size on (in characters)."""

    files: Files
    threshold: int

    def newly_long(self, messages: Sequence[AnyMessage]) -> Flow[dict[int, AnyMessage]]:
        """Save the large messages of the open turn; return them, by `id()`, tagged with where they are."""
        tagged: dict[int, AnyMessage] = {}
        for message in open_turn(messages):
            if isinstance(message, HumanMessage) and not shows_media(message):
                changed = yield from self._saved(message)
                if changed is not None:
                    tagged[id(message)] = changed
        return tagged

    def _saved(self, message: HumanMessage) -> Flow[HumanMessage | None]:
        text, _ = parts(message.content)
        if len(text) <= self.threshold or TAG in message.additional_kwargs:
            return None
        root = self.files.capabilities().artifacts_root.rstrip("/")
        path = f"{root}/conversation_history/{uuid.uuid4().hex}.md"
        try:
            yield from saved(self.files, path, text)
        except ToolFailure:
            return None
        marks = {**message.additional_kwargs, TAG: path, PREVIEW: preview(text)}
        return message.model_copy(update={"additional_kwargs": marks, "id": message.id or uuid.uuid4().hex})


def shortened(messages: list[AnyMessage]) -> list[AnyMessage]:
    """Return the messages with a notice in the place of each text that was saved to a file."""
    if not any(map(_is_tagged, messages)):
        return messages
    return [_noticed(message) if _is_tagged(message) else message for message in messages]


def _is_tagged(message: AnyMessage) -> bool:
    return isinstance(message, HumanMessage) and TAG in message.additional_kwargs


def _noticed(message: AnyMessage) -> AnyMessage:
    marks: dict[str, Any] = message.additional_kwargs
    text, others = parts(message.content)
    sample = marks.get(PREVIEW) or preview(text)
    notice = NOTICE.format(file_path=marks[TAG], content_sample=sample)
    kept = {key: value for key, value in marks.items() if key != PREVIEW}
    return message.model_copy(update={"content": with_text(notice, others), "additional_kwargs": kept})
