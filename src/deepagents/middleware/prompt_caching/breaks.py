"""Notice requests that do not begin with the one before, because a provider's cache serves less of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from langchain_core.messages import AnyMessage

from deepagents._state.runtime import emit, place_of_agent
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._incremental import BoundedCache, IncrementalCache
from deepagents.middleware._requests import Request, Response, with_messages
from deepagents.middleware.prompt_caching.prefix import Region, Sent, blocks_sent, serialise

__all__ = ["CacheBreakMiddleware"]

_CAUSES: Final[Sequence[tuple[str, str, tuple[Region, ...]]]] = (
    ("compaction", "_summarization_event", ("tools", "messages")),
    ("clipping", "_clipped_messages", ("messages",)),
    ("memory", "memory_contents", ("system",)),
    ("skills", "skills_metadata", ("tools", "system")),
    ("skills", "_skill_tools_disclosed", ("tools",)),
    ("tool_search", "_loaded_tools", ("tools",)),
)
"""What of this library changes the beginning of requests: by which key of the state, and in which regions."""
_CHARACTERS_PER_TOKEN: Final = 4
_Hashed: TypeAlias = tuple[list[int], list[int]]


class CacheBreakMiddleware(BaseMiddleware):
    """Write an event `cache_broken` for each request that does not begin with all of the one before.

    It compares requests of one agent in one thread, as they are sent. Each message is read once; of a request
    hashes are kept, for the last 64 threads.
    """

    def __init__(self) -> None:
        super().__init__()
        self._hashed = IncrementalCache[_Hashed]()
        self._last = BoundedCache[tuple[Sent, Mapping[str, Any]]]()

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        self._compare(with_messages(request))
        return await inner(handler, request)

    def _compare(self, request: Request) -> None:
        messages: Sequence[AnyMessage] = request.messages
        # What has no id is a note that is in no state, and in this request alone.
        while messages and messages[-1].id is None:
            messages = messages[:-1]
        hashes, lengths = self._hashed.of(messages, lambda: ([], []), _add)
        now = Sent(request.tools, blocks_sent(request.system_message), hashes, lengths)
        state: dict[str, Any] = {key: request.state.get(key) for _, key, _ in _CAUSES}
        thread, agent = place_of_agent()
        # Without a thread, a run has the object that its first message is. It is kept, so that its id is too.
        first: list[AnyMessage] = [] if thread else request.state.get("messages", [])[:1]
        state["messages"] = first
        place = (thread or tuple(map(id, first)), agent)
        # Taken out and put in again: those that were not used for longest go first.
        before, known = self._last.pop(place, (now, state))
        self._last[place] = now, state
        if broken := before.find_break(now):
            region, index = broken
            changed = (
                name for name, key, regions in _CAUSES if region in regions and state[key] != known[key]
            )
            lost = before.count_from(region, index) // _CHARACTERS_PER_TOKEN
            emit("cache_broken", region=region, index=index, reason=next(changed, None), lost_tokens=lost)


def _add(known: _Hashed, messages: Sequence[AnyMessage]) -> _Hashed:
    texts = [serialise(each) for each in messages]
    return [*known[0], *map(hash, texts)], [*known[1], *map(len, texts)]
