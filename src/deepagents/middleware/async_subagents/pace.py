"""When a task may be asked about again, and how long a server that failed is left alone."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

MOST_AT_ONCE: Final = 8
_MOST_REMEMBERED: Final = 10_000
_JUST_NOW: Final = 0.5
_FIRST_PAUSE: Final = 15.0
_LONGEST_PAUSE: Final = 300.0
_SHORTEST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 5.0
_TIMES_USUAL: Final = 3


@dataclass(slots=True)
class _Server:
    failures: int = 0
    silent_until: float = 0.0
    slowest: float = 0.0


@dataclass(slots=True)
class Pace:
    """What one middleware remembers of its own questions; nothing of it is saved, or missed after a restart.

    A server that fails is left alone for 15 s, then for twice as long each time, 5 minutes at most. A poll
    waits for a server three times as long as it ever took, from 1 s to 5 s.
    """

    interval: float
    clock: Callable[[], float] = time.monotonic
    _asked: OrderedDict[str, float] = field(default_factory=OrderedDict[str, float])
    _servers: dict[Hashable, _Server] = field(default_factory=dict[Hashable, _Server])
    _lock: Any = field(default_factory=Lock)

    def choose(self, tasks: Mapping[str, Hashable], *, at_the_end: bool = False) -> list[str]:
        """Choose the tasks to ask about now, given with their servers: those that have waited longest.

        They are not chosen again before the interval is over; but the end of a run is a last chance, so there
        it is enough that they were not asked about just now.
        """
        now = self.clock()
        interval = min(self.interval, _JUST_NOW) if at_the_end else self.interval
        with self._lock:
            since = {task_id: self._asked.get(task_id, -math.inf) for task_id in tasks}
            due = [
                task_id
                for task_id, server in tasks.items()
                if now >= since[task_id] + interval and now >= self._server(server).silent_until
            ]
            chosen = sorted(due, key=since.__getitem__)[:MOST_AT_ONCE]
            for task_id in chosen:
                self._note(task_id, now)
            return chosen

    def asked(self, task_id: str) -> None:
        """Take note that a task was asked about by someone else."""
        with self._lock:
            self._note(task_id, self.clock())

    def begun(self, task_id: str) -> None:
        """Take note that a task was given work; at the end of a run it is asked about in any case."""
        with self._lock:
            self._note(task_id, self.clock() - _JUST_NOW)

    def answered(self, server: Hashable, seconds: float) -> None:
        """Take note that a server answered, and how long that took."""
        with self._lock:
            known = self._server(server)
            known.failures, known.silent_until = 0, 0.0
            known.slowest = max(known.slowest, seconds)

    def failed(self, server: Hashable) -> None:
        """Take note that a server failed; it is left alone for a while."""
        now = self.clock()
        with self._lock:
            known = self._server(server)
            if now < known.silent_until:
                return
            known.silent_until = now + min(_FIRST_PAUSE * 2 ** min(known.failures, 10), _LONGEST_PAUSE)
            known.failures += 1

    def wait(self, server: Hashable) -> float:
        """Say how many seconds a poll may take."""
        with self._lock:
            usual = self._server(server).slowest * _TIMES_USUAL
        return min(max(usual, _SHORTEST_WAIT), _LONGEST_WAIT)

    def _server(self, server: Hashable) -> _Server:
        return self._servers.setdefault(server, _Server())

    def _note(self, task_id: str, now: float) -> None:
        self._asked[task_id] = now
        self._asked.move_to_end(task_id)
        while len(self._asked) > _MOST_REMEMBERED:
            self._asked.popitem(last=False)
