"""Open a conversation: the view is one process and the session, with the agent, another."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from typing import Any

    from deepagents_cli.protocol import Open
    from deepagents_cli.values import Mode
    from deepagents_cli.views.chat.link import Link

# -P: a project may have a module of any name, and Python would look for its own in the directory first.
WORKER = (sys.executable, "-P", "-m", "deepagents_cli.session")
_APART = ("dir", "thread", "resume", "model", "mode", "price")
"""Options that have a place of their own in the message that opens a conversation."""
_OF_THE_VIEW = ("command", "plain", "debug", "task", "typed")


def run(arguments: Namespace, *, model: Any = None, worker: Sequence[str] = WORKER) -> int:
    """Open a conversation in a directory; `worker` is the command of the process that holds the agent."""
    from deepagents_cli.errors import CommandError
    from deepagents_cli.views.chat.startup import FirstPrompt, clear_prompt, is_plain

    try:
        if arguments.plain or is_plain():
            from deepagents_cli.views.chat.plain import talk

            return talk(_open(arguments), worker)
        with FirstPrompt() as prompt:
            return _converse(arguments, worker, prompt.typed or getattr(arguments, "typed", 0))
    except ModuleNotFoundError as error:
        clear_prompt()
        raise CommandError(
            f"This command needs more packages ({error.name} is missing): "
            "pip install '.[cli]' in a checkout of deepagents"
        ) from error


def _converse(arguments: Namespace, worker: Sequence[str], typed: int) -> int:
    from deepagents_cli.views.chat.process import WorkerProcess

    # The worker first: both processes import what they need at the same time.
    process = WorkerProcess(worker, raw=True)
    import asyncio
    from dataclasses import replace
    from pathlib import Path

    from deepagents_cli.views.chat.link import Link, writable_in
    from deepagents_cli.views.chat.screen import Screen

    opening = _open(arguments)

    def start_again(thread: str | None, mode: Mode | None) -> Link:
        present = replace(opening, thread=thread or opening.thread, mode=mode or opening.mode)
        return Link(WorkerProcess(worker, raw=True), present)

    link, directory = Link(process, opening), Path(opening.directory)
    return asyncio.run(Screen(start_again, link, directory, typed, writable_in(opening)).run())


def _open(arguments: Namespace) -> Open:
    import os

    from deepagents_cli.protocol import Open

    others = {key: value for key, value in vars(arguments).items() if key not in (*_APART, *_OF_THE_VIEW)}
    return Open(
        os.path.realpath(arguments.dir),
        others,
        thread=arguments.thread,
        resume=arguments.resume,
        model=arguments.model,
        mode=arguments.mode,
        price=arguments.price,
    )
