"""Wait for what a client is asked, and ask one that does not answer no more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")
SECONDS: Final = 10.0
"""How long a client may take for what no person has to decide."""


class Answering:
    """Waits for the answers of a client to requests of one kind, until the first that does not come.

    Args:
        without: says what is done without the client.
        say: tells that to the person.
    """

    def __init__(self, without: str, say: Callable[[str], None]) -> None:
        self._without = without
        self._say = say
        self.is_over = False
        """Whether a request was not answered."""

    async def wait(self, asked: Awaitable[T]) -> T:
        """Return the answer to a request.

        Raises:
            TimeoutError: when it does not come.
        """
        try:
            async with asyncio.timeout(SECONDS):
                return await asked
        except TimeoutError as error:
            late = f"did not answer within {SECONDS:.0f} seconds"
            if not self.is_over:
                self._say(f"The editor {late}. {self._without}, until the session is opened again.")
            self.is_over = True
            raise TimeoutError(f"it {late}") from error
