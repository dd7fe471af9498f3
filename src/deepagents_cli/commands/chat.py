"""Open a conversation: the view is one process and the session, with the agent, another."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepagents_cli.commands.options import add_debug, add_model
from deepagents_cli.session.agent.access import FLAGS, REPEATS
from deepagents_cli.values import MODES, read_amount, read_count, read_number, read_price, read_seconds

if TYPE_CHECKING:
    from deepagents_cli.protocol import Open, Ready
    from deepagents_cli.values import Mode
    from deepagents_cli.views.chat.worker.link import Link

# -P: a project may have a module of any name, and Python would look for its own in the directory first.
WORKER = (sys.executable, "-P", "-m", "deepagents_cli.session")
_APART = ("dir", "thread", "resume", "model", "mode", "price")
"""Options that have a place of their own in the message that opens a conversation."""
_OF_THE_VIEW = ("command", "plain", "debug", "task", "typed")


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    chat = commands.add_parser(
        "chat",
        help="talk with an agent that works on a directory; `deepagents` alone does the same",
        description="Talk with an agent that works on a directory. /help shows what can be typed.",
    )
    # What `run` has besides, and a conversation does not.
    chat.set_defaults(yes=False)
    add_place(chat)
    add_own_options(chat)
    add_work(chat)


def add_own_options(chat: argparse.ArgumentParser) -> None:
    """Describe the options of a conversation alone."""
    chat.add_argument(
        "--plain",
        action="store_true",
        help="write line after line, for screen readers and logs; nothing is drawn twice",
    )


def add_place(parser: argparse.ArgumentParser) -> None:
    """Describe where and how an agent works."""
    parser.add_argument(
        "--dir", type=Path, default=Path(), help="the directory to work on, and to stay in (default: .)"
    )
    add_model(parser)
    add_mode(parser)


def add_mode(parser: argparse.ArgumentParser) -> None:
    """Let the mode be named."""
    parser.add_argument(
        "--effort", metavar="LEVEL", help="how much the model reasons: low, medium, high, or what else it has"
    )
    parser.add_argument(
        "--mode", choices=MODES, help="what the agent may do without asking: see `deepagents -h`"
    )


def add_work(parser: argparse.ArgumentParser) -> None:
    """Describe what a task and a conversation may use, and which session they go on with."""
    parser.add_argument(
        "--continue", dest="resume", action="store_true", help="take up the directory's last session"
    )
    parser.add_argument(
        "--thread", metavar="NAME", help="use the session of this name or id; a new one gets the id"
    )
    parser.add_argument(
        "--worktree",
        nargs="?",
        const="",
        metavar="NAME",
        help="work in a git worktree of its own, on a branch of this name",
    )
    add_use(parser)
    add_debug(parser)


def add_use(parser: argparse.ArgumentParser) -> None:
    """Describe what an agent may use."""
    _add_commands(parser)
    _add_servers(parser)
    _add_limits(parser)


def _add_commands(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group(
        "commands", "what commands may do; in the sandbox, they reach DIR, and no network"
    )
    group.add_argument("--auto", action="store_true", help="--mode auto, where there is a sandbox")
    for name, kind, metavar, text in (
        ("network", str, "HOST", "let commands reach this host, or `all`"),
        ("read", Path, "DIR", "let the agent read this directory too"),
        ("write", Path, "DIR", "let the agent change this directory too"),
    ):
        group.add_argument(
            f"--{name}",
            action="append",
            default=[],
            type=kind,
            metavar=metavar,
            help=f"{text}; may be repeated",
        )
    group.add_argument(
        "--shell", action="store_true", help="run commands without the sandbox, with all your rights"
    )


def _add_servers(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group(
        "servers", "MCP servers whose tools the agent has; each call is asked about"
    )
    group.add_argument(
        "--mcp",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="use the servers in this file, written like a .mcp.json; may be repeated",
    )
    group.add_argument("--no-mcp", action="store_true", help="use no other servers")


def _add_limits(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group("limits", "what the agent and all its subagents may use for this task")

    def add(kind: str, read: Any, metavar: str, text: str) -> None:
        group.add_argument(FLAGS[kind], dest=kind, type=read, metavar=metavar, help=text)

    add("tokens", read_count, "N", "tokens that models read and write")
    add("money", read_amount, "AMOUNT", "what these may cost")
    group.add_argument(
        "--price",
        type=read_price,
        metavar="IN/OUT[/CACHED]",
        help="what a million tokens cost: read, written, and read from the provider's cache",
    )
    add("seconds", read_seconds, "TIME", "such as 90s, 10m or 1h30m; questions do not count")
    add("model_calls", read_count, "N", "requests to models")
    add("tool_calls", read_count, "N", "tool calls")
    text = f"equal tool calls in a row (default: {REPEATS}; 0: any number)"
    add("repeats", read_number, "N", text)


def run(arguments: Namespace, *, model: Any = None, worker: Sequence[str] = WORKER) -> int:
    """Open a conversation in a directory; `worker` is the command of the process that holds the agent."""
    from deepagents_cli.errors import missing_package
    from deepagents_cli.views.terminal.startup import FirstPrompt, clear_prompt, is_plain

    try:
        if arguments.plain or is_plain():
            from deepagents_cli.views.chat.plain import talk

            return talk(opening_of(arguments), worker)
        with FirstPrompt() as prompt:
            return _converse(arguments, worker, prompt.typed or getattr(arguments, "typed", 0))
    except ModuleNotFoundError as error:
        clear_prompt()
        raise missing_package(error, "cli") from error


def _converse(arguments: Namespace, worker: Sequence[str], typed: int) -> int:
    from deepagents_cli.views.chat.worker.process import WorkerProcess

    # The worker first: both processes import what they need at the same time.
    process = WorkerProcess(worker, raw=True)
    import asyncio
    from dataclasses import replace

    from deepagents_cli.views.chat.screen.screen import Screen
    from deepagents_cli.views.chat.worker.link import Link
    from deepagents_cli.views.worktrees import leave_worktree

    opening = opening_of(arguments)

    def start_again(ready: Ready | None, mode: Mode | None) -> Link:
        present = replace(opening, mode=mode or opening.mode)
        if ready is not None:
            options = {**opening.options, "worktree": None}
            present = replace(present, directory=ready.directory, thread=ready.thread, options=options)
        return Link(WorkerProcess(worker, raw=True), present)

    link, directory = Link(process, opening), Path(opening.directory)
    screen = Screen(start_again, link, directory, typed, arguments.write)
    code = asyncio.run(screen.run())
    if screen.talk.ready is not None:
        leave_worktree(Path(screen.talk.ready.directory), asks=not code)
    return code


def opening_of(arguments: Namespace) -> Open:
    """Return the message that opens what the options name."""
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
