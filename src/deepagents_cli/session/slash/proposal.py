"""Write a file that a person was shown before: just that one, and only if it is still as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deepagents._values import valueclass
from deepagents_cli.errors import CommandError
from deepagents_cli.project.project import read_bytes, write_whole
from deepagents_cli.protocol import Draft, Result
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.text import one_line, reason_of

_LARGEST: Final = 10_000_000
"""Bytes."""


@valueclass
class Proposal:
    """A file in a place, and what it held when its new text was made."""

    path: Path
    before: bytes | None

    @classmethod
    def of(cls, path: Path) -> Proposal:
        """Read the file that is to be written.

        Raises:
            CommandError: for a link, and what is not a file.
        """
        return cls(path, _read(path))

    @property
    def text(self) -> str:
        """What the file held.

        Raises:
            CommandError: where that is not text.
        """
        try:
            return (self.before or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise CommandError(f"{_show(self.path)} is not text") from error

    def show(self, talk: Conversation, text: str) -> Result:
        """Return a result that shows a new text for the file, which can then be written."""
        there = self.before or b""
        replaces = not text.encode("utf-8", "replace").startswith(there.rstrip())
        proposed = talk.workplace.proposed
        number = f"draft-{len(proposed) + 1}"
        proposed[number] = self.write
        return Result(draft=Draft(number, text, str(self.path), len(there) if replaces else 0))

    def write(self, text: str) -> Path:
        """Write the text, and return where.

        Raises:
            CommandError: where it has changed meanwhile, as by the agent, or cannot be written.
        """
        if _read(self.path) != self.before:
            raise CommandError(f"{_show(self.path)} has changed meanwhile; do it again to see it as it is")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A link or a pipe that has come into its place just now is replaced, and not followed.
            write_whole(self.path, text.encode("utf-8", "replace"))
        except OSError as error:
            raise CommandError(f"{_show(self.path)} is not written: {reason_of(error)}") from error
        return self.path


def _read(path: Path) -> bytes | None:
    if path.is_symlink() or path.parent.resolve() != path.parent:
        raise CommandError(f"{_show(path)} is a link; write to the file itself")
    try:
        return read_bytes(path, path.parent, _LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{_show(path)} is not written: {reason_of(error)}") from error


def _show(path: Path) -> str:
    return repr(one_line(str(path)))
