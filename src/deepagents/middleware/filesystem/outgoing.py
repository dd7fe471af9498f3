"""The messages of a request: in the order that providers want, long ones shortened, media filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AnyMessage

from deepagents._flow import Flow
from deepagents.middleware._base import Request
from deepagents.middleware._turns import media_behind_results
from deepagents.middleware.filesystem.blobs import Blobs, holds_bytes
from deepagents.middleware.filesystem.long_messages import LongMessages, shortened


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What messages go through on their way to the model; `None` for what is turned off."""

    long_messages: LongMessages | None
    blobs: Blobs | None

    def prepared(self, request: Request) -> Flow[tuple[Request, list[AnyMessage]]]:
        """Return the request as the model is to see it, and the messages that state is to keep from it."""
        messages = list(request.messages)
        changed = yield from self._changed(messages)
        if changed:
            messages = [changed.get(id(message), message) for message in messages]
        standing = {id(message) for message in _in_state(request)} if changed else set[int]()
        kept = [new for old, new in changed.items() if old in standing and new.id]
        shown = shortened(media_behind_results(messages))
        if self.blobs is not None:
            shown = yield from self.blobs.moved_in(shown)
        return request.override(messages=shown), kept

    def _changed(self, messages: Sequence[AnyMessage]) -> Flow[dict[int, AnyMessage]]:
        changed: dict[int, AnyMessage] = {}
        if self.long_messages is not None:
            changed = yield from self.long_messages.newly_long(messages)
        if self.blobs is not None:
            for message in filter(holds_bytes, messages):
                before = changed.get(id(message), message)
                after = yield from self.blobs.moved_out(before)
                if after is not before:
                    changed[id(message)] = after
        return changed


def _in_state(request: Request) -> Sequence[AnyMessage]:
    return cast("dict[str, Any]", request.state).get("messages", ())
