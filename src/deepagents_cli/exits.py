"""Exit codes, and the errors that the command line raises itself."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    LIMITED = 4
    STOPPED = 130
    PIPE = 141


class CommandError(Exception):
    """A command cannot go on; the message is one sentence for the person who typed it."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code
