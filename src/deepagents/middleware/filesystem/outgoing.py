"""The messages of a request: in the order that providers want, long ones shortened, media filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langchain_core.messages import AnyMessage

from deepagents._state.runtime import in_graph, write_channel
from deepagents.backends.calls import Files
from deepagents.middleware._base import Request
from deepagents.middleware._history import media_behind_results, open_turn, shows_media
from deepagents.middleware._incremental import Beginnings
from deepagents.middleware.filesystem.blobs import Blobs
from deepagents.middleware.filesystem.long_messages import LongMessages, shortened

Notables: TypeAlias = Beginnings[list[AnyMessage]]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What messages go through on their way to the model; `None` for what is turned off."""

    files: Files
    long_messages: LongMessages | None
    keeps_blobs: bool
    known: Notables

    async def prepared(self, request: Request) -> tuple[Request, list[AnyMessage]]:
        """Return the request as the model is to see it, and the messages that state is still to keep from it.

        In a graph they are written at once, so that what is written later builds on them.
        """
        notable = self.known.of(request.messages, list[AnyMessage], _with_notable)
        changed = await self._changed(notable, open_turn(request.messages))
        request, kept = _with_changed(request, changed) if changed else (request, [])
        if kept and in_graph():
            write_channel("messages", kept)
            kept = []
        return await self._shown(request, [changed.get(id(each), each) for each in notable]), kept

    async def _shown(self, request: Request, notable: list[AnyMessage]) -> Request:
        """Return the request with the messages as the model is to see them; most stay as they are."""
        ready = await Blobs(self.files).moved_in(shortened(notable))
        changed = {id(old): new for old, new in zip(notable, ready, strict=True) if new is not old}
        if not changed and not any(map(shows_media, notable)):
            return request
        messages = media_behind_results(list(request.messages))
        return request.override(messages=[changed.get(id(each), each) for each in messages])

    async def _changed(
        self, messages: Sequence[AnyMessage], unseen: Sequence[AnyMessage]
    ) -> dict[int, AnyMessage]:
        changed: dict[int, AnyMessage] = {}
        if self.long_messages is not None:
            changed = await self.long_messages.newly_long(messages, unseen)
        if not self.keeps_blobs:
            return changed
        before = [changed.get(id(message), message) for message in messages]
        after = await Blobs(self.files).all_moved_out(before)
        return changed | {
            id(message): moved
            for message, standing, moved in zip(messages, before, after, strict=True)
            if moved is not standing
        }


def _with_notable(before: list[AnyMessage], new: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Add what a person said and what is not text alone: nothing else is shortened, saved or filled in."""
    found = [each for each in new if each.type == "human" or not isinstance(each.content, str)]
    return [*before, *found] if found else before


def _with_changed(request: Request, changed: dict[int, AnyMessage]) -> tuple[Request, list[AnyMessage]]:
    """Return the request and its state with the changed messages in them, and those that state holds."""
    state = cast("dict[str, Any]", request.state)
    standing: Sequence[AnyMessage] = state.get("messages", ())
    kept = [new for each in standing if (new := changed.get(id(each))) is not None and new.id]
    own = [changed.get(id(each), each) for each in standing]
    messages = [changed.get(id(each), each) for each in request.messages]
    return request.override(messages=messages, state=cast(Any, {**state, "messages": own})), kept
