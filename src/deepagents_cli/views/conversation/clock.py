"""Measure how long the agent works and its model is silent, without the time in which the person is asked."""

from __future__ import annotations

from collections.abc import Callable


class WorkClock:
    """Asks `is_working` and `is_asked` what goes on; `count` is called before that changes."""

    def __init__(
        self, clock: Callable[[], float], is_working: Callable[[], bool], is_asked: Callable[[], bool]
    ) -> None:
        self._clock = clock
        self._is_working = is_working
        self._is_asked = is_asked
        self._since = clock()
        self._worked = self._thought = self._before = self._heard = 0.0

    @property
    def worked(self) -> float:
        """Seconds of work in this session."""
        running = self._is_working() and not self._is_asked()
        return self._worked + (self._clock() - self._since if running else 0.0)

    @property
    def turn(self) -> float:
        """Seconds of work in the present turn."""
        return self.worked - self._before

    @property
    def silence(self) -> float:
        """Seconds since something came from the agent."""
        return self.now() - self._heard

    def now(self) -> float:
        """Return the time of a clock that stands while the person is asked."""
        return (self._since if self._is_asked() else self._clock()) - self._thought

    def count(self) -> None:
        """Add up what went on until now."""
        worked, now = self.worked, self._clock()
        self._thought += now - self._since if self._is_asked() else 0.0
        self._worked, self._since = worked, now

    def hear(self) -> None:
        """Note that something came from the agent."""
        self._heard = self.now()

    def begin_turn(self) -> None:
        """Note that a turn begins."""
        self._before = self.worked
        self.hear()

    def begin_session(self) -> None:
        """Forget the work of another session."""
        self._worked = self._before = 0.0
