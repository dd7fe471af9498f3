"""Read and write files through a client, which may show text that is not saved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from threading import get_ident
from typing import Any, Final, TypeVar

from acp.exceptions import RequestError
from acp.interfaces import Client
from pydantic import ValidationError

from deepagents.backends.filesystem import Buffers
from deepagents.errors import BackendError
from deepagents_cli.views.acp.answering import Answering

T = TypeVar("T")
_MOST_KNOWN: Final = 64


class ClientFiles(Buffers):
    """The files of one session as its client shows them; made in the loop, and called in threads."""

    def __init__(
        self, client: Client, session: Callable[[], str], say: Callable[[str], None], *, writes: bool
    ) -> None:
        self._client = client
        self._session = session
        self._writes = writes
        self._answering = Answering("From now on, files are read and written on the disk", say)
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._known: dict[Path, str] = {}

    def read(self, path: Path) -> str | None:
        """Return the text that the client shows of a file."""
        if self._answering.is_over:
            return None
        if get_ident() == self._thread:
            # The loop cannot wait for itself: what a call would do is shown on what was read last.
            return self._known.get(path)
        try:
            asked = self._client.read_text_file(session_id=self._session(), path=str(path))
            text = self._wait(asked).content
        except (RequestError, ValidationError, ConnectionError, TimeoutError):
            # What a client does not show, such as a file outside of its project, is read from the disk.
            self._known.pop(path, None)
            return None
        self._remember(path, text)
        return text

    def write(self, path: Path, text: str) -> bool:
        """Let the client write a file.

        Raises:
            BackendError: `io_error` when it did not.
        """
        if not self._writes or self._answering.is_over or get_ident() == self._thread:
            return False
        try:
            self._wait(self._client.write_text_file(session_id=self._session(), path=str(path), content=text))
        except TimeoutError as error:
            text = f"The editor was asked to write '{path}', and {error}. It may do so later: read it again"
            raise BackendError("io_error", text) from error
        except (RequestError, ConnectionError) as error:
            raise BackendError("io_error", f"The editor did not write '{path}': {error}") from error
        self._remember(path, text)
        return True

    def _wait(self, asked: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(self._answering.wait(asked), self._loop).result()

    def _remember(self, path: Path, text: str) -> None:
        self._known.pop(path, None)
        self._known[path] = text
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
