"""The messages of a request: in the order that providers want, long ones shortened, media filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AnyMessage

from deepagents._channels import in_graph, write_channel
from deepagents._flow import Flow
from deepagents.backends.calls import Files
from deepagents.middleware._base import Request
from deepagents.middleware._turns import media_behind_results
from deepagents.middleware.filesystem.blobs import Blobs
from deepagents.middleware.filesystem.long_messages import LongMessages, shortened


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What messages go through on their way to the model; `None` for what is turned off."""

    files: Files
    long_messages: LongMessages | None
    keeps_blobs: bool

    def prepared(self, request: Request) -> Flow[tuple[Request, list[AnyMessage]]]:
        """Return the request as the model is to see it, and the messages that state is still to keep from it.

        In a graph they are written at once, so that what is written later builds on them.
        """
        changed = yield from self._changed(request.messages)
        request, kept = _with_changed(request, changed) if changed else (request, [])
        shown = shortened(media_behind_results(list(request.messages)))
        shown = yield from Blobs(self.files).moved_in(shown)
        if kept and in_graph():
            write_channel("messages", kept)
            kept = []
        return request.override(messages=shown), kept

    def _changed(self, messages: Sequence[AnyMessage]) -> Flow[dict[int, AnyMessage]]:
        changed: dict[int, AnyMessage] = {}
        if self.long_messages is not None:
            changed = yield from self.long_messages.newly_long(messages)
        if not self.keeps_blobs:
            return changed
        before = [changed.get(id(message), message) for message in messages]
        after = yield from Blobs(self.files).all_moved_out(before)
        return changed | {
            id(message): moved
            for message, standing, moved in zip(messages, before, after, strict=True)
            if moved is not standing
        }


def _with_changed(request: Request, changed: dict[int, AnyMessage]) -> tuple[Request, list[AnyMessage]]:
    """Return the request and its state with the changed messages in them, and those that state holds."""
    state = cast("dict[str, Any]", request.state)
    standing: Sequence[AnyMessage] = state.get("messages", ())
    kept = [new for each in standing if (new := changed.get(id(each))) is not None and new.id]
    own = [changed.get(id(each), each) for each in standing]
    messages = [changed.get(id(each), each) for each in request.messages]
    return request.override(messages=messages, state=cast(Any, {**state, "messages": own})), kept
