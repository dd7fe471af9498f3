"""See that a question is answered only by what was begun when it could be read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from deepagents_cli.views.conversation.questions import Pending

_SEEN: Final = 0.3
"""Seconds that a question stands on the screen before it can be answered."""
_QUIET: Final = 0.6
"""Seconds without a key before a question can be answered: who is writing goes on writing."""
_LOOK: Final = 0.1
"""Seconds between two looks at a line that was begun before."""


class Patience:
    """Waits for each question; `over` is called when it may be answered.

    A line that was begun before is a message, and the question waits until it is sent or cleared.
    """

    def __init__(self, over: Callable[[Pending], None], has_begun: Callable[[], bool]) -> None:
        self._over = over
        self._has_begun = has_begun
        self._shown: Pending | None = None
        self._answerable: Pending | None = None
        self._key_at = 0.0

    def note_key(self, _: object) -> None:
        """Note that a key was pressed."""
        self._key_at = time.monotonic()

    @property
    def is_typing(self) -> bool:
        """Whether a key was pressed a moment ago."""
        return time.monotonic() < self._key_at + _QUIET

    def show(self, question: Pending | None) -> None:
        """Note which question is on the screen from now on."""
        if question is self._shown:
            return
        self._shown, self._answerable = question, None
        if question is not None:
            asyncio.get_running_loop().call_later(_SEEN, self._wait, question)

    def is_over(self, question: Pending | None) -> bool:
        """Tell whether this question may be answered."""
        return question is not None and question is self._answerable

    def _wait(self, question: Pending) -> None:
        if question is not self._shown:
            return
        left = self._key_at + _QUIET - time.monotonic()
        if left > 0 or self._has_begun():
            asyncio.get_running_loop().call_later(max(left, _LOOK), self._wait, question)
            return
        self._answerable = question
        self._over(question)
