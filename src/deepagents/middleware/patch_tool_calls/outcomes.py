"""Remember how calls ended that have no result, as far as this process saw it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Final, Literal, TypeAlias

Outcome: TypeAlias = Literal["cancelled", "waiting"]
"""It was cancelled while it ran, or waited for a person and never began."""

MOST_KNOWN: Final = 1_000


class CallOutcomes:
    """Outcomes by thread and call; each is read once, and the oldest are forgotten first."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Outcome] = OrderedDict()
        self._lock = Lock()

    def note(self, thread: str | None, call_id: str | None, outcome: Outcome) -> None:
        """Note how a call ended; nothing where it could be taken for another."""
        if thread is None or call_id is None:
            return
        with self._lock:
            self._known[thread, call_id] = outcome
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def forget(self, thread: str | None, call_id: str | None) -> None:
        """Forget a call that begins."""
        with self._lock:
            self._known.pop((thread or "", call_id or ""), None)

    def take(self, thread: str | None) -> Mapping[str, Outcome]:
        """Return what is known of a thread's calls, and forget it."""
        with self._lock:
            mine = [key for key in self._known if key[0] == thread]
            return {call_id: self._known.pop((name, call_id)) for name, call_id in mine}
