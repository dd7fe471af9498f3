"""A moment after which work stops and hands over what it has."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock."""

    at: float

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """Set a deadline so many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def passed(self) -> bool:
        """Tell whether it is too late."""
        return time.monotonic() >= self.at
