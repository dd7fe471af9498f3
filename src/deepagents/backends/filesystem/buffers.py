"""Let a program that shows files, such as an editor, say what it holds of them and write them.

Paths are resolved and checked before such a program is asked; what it is asked for is text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from deepagents.errors import BackendError

_CHANGED_AGAIN: Final = (
    ". What is there now is another text, as where an editor formats what it saves: read it before you "
    "change it again"
)
_LENGTH: Final = 16


class Put(NamedTuple):
    """What was put into a file: its version, and what the model is to read of it."""

    version: str
    note: str = ""


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


def find_kept(
    path: str, text: str, shown: str | None, saved: str | None, was: str | None, now: str | None
) -> Put:
    """Look what a program that answered that it wrote a text shows, and what is saved, by versions.

    Raises:
        BackendError: `io_error` when it kept nothing.
    """
    texts = [each for each in (shown, saved) if each is not None]
    if now is not None and all(agree(each, text) for each in texts):
        return Put(now)
    # It may keep the text without saving it, and a person may have typed on.
    if any(agree(each, text) for each in texts):
        return Put(text_version(text))
    if not texts or (was == now and shown in (None, saved)):
        raise BackendError("io_error", f"'{path}' was to be written by an editor, which did not")
    return Put(text_version(text), _CHANGED_AGAIN)


def agree(one: str, other: str) -> bool:
    """Return whether texts are the same, but for line ends."""
    return _lines(one) == _lines(other)


def text_version(text: str) -> str:
    """Return a name for a text that is in no file."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def _lines(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
