"""What became of calls that ended without a result, as far as this process saw it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Final, Literal, TypeAlias

Fate: TypeAlias = Literal["cancelled", "waiting"]
"""It was cancelled while it ran, or waited for a person and never began."""

MOST_KNOWN: Final = 1_000


class CallFates:
    """Fates by thread and call, the oldest forgotten first; a thread's are handed out once."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Fate] = OrderedDict()
        self._lock = Lock()

    def note(self, thread: str | None, call_id: str | None, fate: Fate) -> None:
        """Keep what became of a call; nothing where it could be taken for another."""
        if thread is None or call_id is None:
            return
        with self._lock:
            self._known[thread, call_id] = fate
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def forget(self, thread: str | None, call_id: str | None) -> None:
        """Forget a call that begins."""
        with self._lock:
            self._known.pop((thread or "", call_id or ""), None)

    def taken(self, thread: str | None) -> Mapping[str, Fate]:
        """Hand out what is known of a thread's calls."""
        with self._lock:
            mine = [key for key in self._known if key[0] == thread]
            return {call_id: self._known.pop((name, call_id)) for name, call_id in mine}
