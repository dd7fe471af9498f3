"""Let a program that shows files, such as an editor, say what it holds of them and write them.

Paths are resolved and checked before such a program is asked; what it is asked for is text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

_LENGTH: Final = 16


class Buffers(Protocol):
    """Files as another program shows them; called in threads, and never for files of the harness."""

    def read(self, path: Path) -> str | None:
        """Return the text that is shown of a file that is there; `None` where that is not known."""
        ...

    def write(self, path: Path, text: str) -> bool:
        """Make text the content of a file, in a directory that is there; return false where it does not.

        Raises:
            BackendError: when it failed.
        """
        ...


def find_unsaved(buffers: Buffers | None, path: Path, read: Callable[[], bytes]) -> str | None:
    """Return the text of a buffer that is not what the file holds; `None` where they agree."""
    shown = None if buffers is None else buffers.read(path)
    if shown is None:
        return None
    try:
        saved = read().decode()
    except UnicodeDecodeError:
        # What is shown of other encodings is not what would have to be written.
        return None
    # An editor may show other line ends than it writes.
    return None if agree(shown, saved) else shown


def agree(one: str, other: str) -> bool:
    """Return whether texts are the same, but for line ends."""
    return _lines(one) == _lines(other)


def text_version(text: str) -> str:
    """Return a name for a text that is in no file."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def _lines(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
