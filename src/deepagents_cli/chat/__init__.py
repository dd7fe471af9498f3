"""The conversation: `deepagents` alone. The screen is one process and the agent, the worker, another.

Nothing in this package imports LangChain, LangGraph or pydantic, and nothing that takes long is imported
before the first prompt is on the screen.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepagents_cli.chat.startup import RawTerminal, is_plain, paint_prompt

if TYPE_CHECKING:
    from deepagents_cli.chat.link import Link

WORKER: Final = (sys.executable, "-m", "deepagents_cli.worker")
_NOT_OPTIONS: Final = frozenset(
    {"command", "dir", "thread", "resume", "model", "mode", "plain", "debug", "task"}
)


def run(arguments: Namespace, *, model: Any = None, worker: Sequence[str] = WORKER) -> int:
    """Open a conversation in a directory; `worker` is the command of the process that holds the agent."""
    directory = Path(os.path.realpath(arguments.dir))
    if is_plain(asked=arguments.plain):
        from deepagents_cli.chat.plain import talk

        return talk(_open(arguments, directory), worker)
    with RawTerminal(sys.stdin.fileno()):
        paint_prompt(_short(directory))
        # Only now: the worker starts, and both it and this process import what they need at the same time.
        from deepagents_cli.chat.link import start_worker

        opening = _open(arguments, directory)
        link = start_worker(worker, opening)
        import asyncio

        from deepagents_cli.chat.screen import Screen

        def start_again(thread: str | None) -> Link:
            return start_worker(worker, {**opening, "thread": thread or opening["thread"]})

        return asyncio.run(Screen(start_again, link, directory).run())


def _open(arguments: Namespace, directory: Path) -> dict[str, Any]:
    given = {name: value for name, value in vars(arguments).items() if name not in _NOT_OPTIONS}
    return {
        "directory": str(directory),
        "thread": arguments.thread,
        "resume": arguments.resume,
        "model": arguments.model,
        "mode": arguments.mode,
        "options": given,
    }


def _short(directory: Path) -> str:
    from deepagents_cli.terminal import one_line

    home = str(Path.home())
    text = str(directory)
    shown = f"~{text.removeprefix(home)}" if text == home or text.startswith(f"{home}/") else text
    return one_line(shown)
