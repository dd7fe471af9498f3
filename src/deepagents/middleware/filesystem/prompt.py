"""Tell the model of files, and of commands where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deepagents.backends.capabilities import Capabilities

PROMPT: Final = (
    "You have a filesystem; every path is absolute and starts with /. Look before you change: {tools}. Call "
    "independent tools together in one turn."
)
FILESYSTEM_PROMPT: Final = PROMPT.format(
    tools="ls, glob and grep find things, read_file shows them; write_file and edit_file change them"
)
_MOST_ROUTES: Final = 8
_START: Final = "Commands start in {directory}, where your files are."
_APART: Final = "Commands do not find what is below {routes}: use the file tools there."


def describe_commands(prompt: str, can: Capabilities) -> str:
    """Add to a prompt where commands start, and which files they do not find."""
    sentences = [prompt]
    if can.working_directory is not None:
        sentences.append(_START.format(directory=can.working_directory))
    if can.apart:
        sentences.append(_APART.format(routes=_join_routes(can.apart)))
    return " ".join(sentences)


def _join_routes(routes: Sequence[str]) -> str:
    more = len(routes) - _MOST_ROUTES
    return ", ".join(routes[:_MOST_ROUTES]) + (f" and {more} more places" if more > 0 else "")
