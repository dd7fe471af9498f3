"""Prepare the messages of a request: long ones are shortened, media filled in, in the order providers want.

State keeps a person's message whole. Its text is saved to a file once, the message is marked with the path,
and each request shows how the text begins and ends.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from langchain_core.messages import AnyMessage, HumanMessage

from deepagents._paths import HISTORY, CommandPaths
from deepagents._state.runtime import in_graph, write_channel
from deepagents._values import valueclass
from deepagents.backends.handle import FileCalls
from deepagents.errors import ToolFailure
from deepagents.middleware._history import media_behind_results, open_turn, shows_media
from deepagents.middleware._incremental import BoundedCache, IncrementalCache
from deepagents.middleware._offload import join_content, offload_notice, save_text, split_content
from deepagents.middleware._requests import Request, with_changes
from deepagents.middleware.filesystem.blobs import Blobs
from deepagents.middleware.filesystem.offload import OFFLOADED_TO

Candidates: TypeAlias = IncrementalCache[list[AnyMessage]]
Shortened: TypeAlias = BoundedCache[tuple[AnyMessage, AnyMessage]]


@valueclass
class RequestPreparation:
    """What messages go through on their way to the model.

    Args:
        files: where long texts are.
        blobs: where media are.
        threshold: characters above which a person's message is shortened; `None` shortens none.
        keeps_blobs: whether media go to files.
        candidates: remembers which messages could be concerned, so that each request looks at new ones only.
        shortened: remembers messages as they are shown, by the path in their mark. What comes after knows a
            history by its objects, so each request must show the same ones.
        paths: translates the paths that the model reads.
    """

    files: FileCalls
    blobs: Blobs
    threshold: int | None
    keeps_blobs: bool
    candidates: Candidates
    shortened: Shortened
    paths: CommandPaths

    async def prepare(self, request: Request) -> tuple[Request, list[AnyMessage]]:
        """Return the request as the model is to see it, and messages that state must still take in.

        In a graph those are written at once, so that what is written later builds on them.
        """
        candidates = self.candidates.of(request.messages, list[AnyMessage], _add_candidates)
        changed = await self._save(candidates, open_turn(request.messages))
        request, for_state = _replace_messages(request, changed) if changed else (request, [])
        if for_state and in_graph():
            write_channel("messages", for_state)
            for_state = []
        return await self._show(request, [changed.get(id(each), each) for each in candidates]), for_state

    async def _save(
        self, messages: Sequence[AnyMessage], unseen: Sequence[AnyMessage]
    ) -> dict[int, AnyMessage]:
        """Save long texts and media; return the changed messages by `id()` of the old ones."""
        changed: dict[int, AnyMessage] = {}
        if self.threshold is not None:
            changed = await self._save_long(messages, unseen)
        if not self.keeps_blobs:
            return changed
        before = [changed.get(id(message), message) for message in messages]
        after = await self.blobs.extract_all(before)
        return changed | {
            id(message): new
            for message, old, new in zip(messages, before, after, strict=True)
            if new is not old
        }

    async def _save_long(
        self, messages: Sequence[AnyMessage], unseen: Sequence[AnyMessage]
    ) -> dict[int, AnyMessage]:
        """Save the large messages that the model has not seen, and those whose mark is not ours."""
        marked: dict[int, AnyMessage] = {}
        new = set(map(id, unseen))
        for message in messages:
            if not isinstance(message, HumanMessage) or shows_media(message) or _is_saved(message):
                continue
            if id(message) in new or OFFLOADED_TO in message.additional_kwargs:
                saved = await self._save_message(message)
                if saved is not None:
                    marked[id(message)] = saved
        return marked

    async def _save_message(self, message: HumanMessage) -> HumanMessage | None:
        text, _ = split_content(message.content)
        if len(text) <= (self.threshold or 0):
            return None
        message_id = message.id or uuid.uuid4().hex
        path = self.files.capabilities().artifacts_root.rstrip("/") + _message_path(message_id, text)
        try:
            await save_text(self.files, path, text)
        except ToolFailure:
            return None
        marks = {**message.additional_kwargs, OFFLOADED_TO: path}
        return message.model_copy(update={"additional_kwargs": marks, "id": message_id})

    async def _show(self, request: Request, candidates: list[AnyMessage]) -> Request:
        """Return the request with its messages as the model is to see them; most stay as they are."""
        ready = await self.blobs.insert_all(
            [self._shorten(each) if _is_saved(each) else each for each in candidates]
        )
        changed = {id(old): new for old, new in zip(candidates, ready, strict=True) if new is not old}
        if not changed and not any(map(shows_media, candidates)):
            return request
        messages = media_behind_results(list(request.messages))
        return with_changes(request, messages=[changed.get(id(each), each) for each in messages])

    def _shorten(self, message: AnyMessage) -> AnyMessage:
        path: str = message.additional_kwargs[OFFLOADED_TO]
        known = self.shortened.get(path)
        if known and known[0] is message:
            return known[1]
        text, others = split_content(message.content)
        notice = offload_notice(self.paths.show(path), text, what="Message")
        shown = message.model_copy(update={"content": join_content(notice, others)})
        self.shortened[path] = (message, shown)
        return shown


def _add_candidates(before: list[AnyMessage], new: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Add what a person wrote and what is not text alone: nothing else is shortened, saved or filled in."""
    found = [each for each in new if each.type == "human" or not isinstance(each.content, str)]
    return [*before, *found] if found else before


def _replace_messages(request: Request, changed: dict[int, AnyMessage]) -> tuple[Request, list[AnyMessage]]:
    """Return the request and its state with the changed messages in them, and those that state holds."""
    state = cast("dict[str, Any]", request.state)
    own: Sequence[AnyMessage] = state.get("messages", ())
    for_state = [new for each in own if (new := changed.get(id(each))) is not None and new.id]
    replaced = {**state, "messages": [changed.get(id(each), each) for each in own]}
    messages = [changed.get(id(each), each) for each in request.messages]
    return with_changes(request, messages=messages, state=replaced), for_state


# Asked for the same few messages at every step, and hashes texts of megabytes.
@lru_cache(maxsize=16)
def _message_path(message_id: str, text: str) -> str:
    """Return the file for a message, below the artifacts root; another text gets another file."""
    digest = hashlib.sha256(f"{message_id}\0{text}".encode(errors="surrogatepass")).hexdigest()
    return f"/{HISTORY}/{digest[:32]}.md"


def _is_saved(message: AnyMessage) -> bool:
    """Return whether a message says where it was saved, in a mark that fits its text.

    The path in the mark is derived from the text, so that a forged mark cannot hide a message.
    """
    path: Any = message.additional_kwargs.get(OFFLOADED_TO) if isinstance(message, HumanMessage) else None
    if not isinstance(path, str):
        return False
    return path.endswith(_message_path(message.id or "", split_content(message.content)[0]))
