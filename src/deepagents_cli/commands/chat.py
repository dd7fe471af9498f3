"""Open a conversation: the view is one process and the session, with the agent, another."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from deepagents_cli.views.chat.link import Link

# -P: a project may have a module of any name, and Python would look for its own in the directory first.
WORKER = (sys.executable, "-P", "-m", "deepagents_cli.session")
_NOT_OPTIONS = frozenset(
    {"command", "dir", "thread", "resume", "model", "mode", "plain", "debug", "task", "typed"}
)


def run(arguments: Namespace, *, model: Any = None, worker: Sequence[str] = WORKER) -> int:
    """Open a conversation in a directory; `worker` is the command of the process that holds the agent."""
    from deepagents_cli.errors import CommandError
    from deepagents_cli.views.chat.startup import FirstPrompt, clear_prompt, is_plain

    opening = _open(arguments)
    try:
        if arguments.plain or is_plain():
            from deepagents_cli.views.chat.plain import talk

            return talk(opening, worker)
        with FirstPrompt() as prompt:
            return _converse(opening, worker, prompt.typed or getattr(arguments, "typed", 0))
    except ModuleNotFoundError as error:
        clear_prompt()
        raise CommandError(
            f"This command needs more packages ({error.name} is missing): "
            "pip install '.[cli]' in a checkout of deepagents"
        ) from error


def _converse(opening: Mapping[str, Any], worker: Sequence[str], typed: int) -> int:
    # The worker first: both processes import what they need at the same time.
    from deepagents_cli.views.chat.link import start_worker, writable_in

    link = start_worker(worker, opening, raw=True)
    import asyncio
    from pathlib import Path

    from deepagents_cli.views.chat.screen import Screen

    def start_again(thread: str | None, mode: str | None) -> Link:
        present = {"thread": thread or opening["thread"], "mode": mode or opening["mode"]}
        return start_worker(worker, {**opening, **present}, raw=True)

    directory = Path(opening["directory"])
    return asyncio.run(Screen(start_again, link, directory, typed, writable_in(opening)).run())


def _open(arguments: Namespace) -> dict[str, Any]:
    import os

    return {
        "directory": os.path.realpath(arguments.dir),
        "thread": arguments.thread,
        "resume": arguments.resume,
        "model": arguments.model,
        "mode": arguments.mode,
        "options": {name: value for name, value in vars(arguments).items() if name not in _NOT_OPTIONS},
    }
