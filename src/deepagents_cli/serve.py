"""Serve agents over HTTP, and work for servers that share a database."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from deepagents_cli.db import add_ages
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.other_commands import add_debug
from deepagents_cli.values import RETRIES, default_retries, read_count, read_number

_OF_SERVERS: Final = ("connections", "allow_anyone", "operator")


def add_serve(commands: Any) -> None:
    """Describe the command and its options."""
    serve = commands.add_parser(
        "serve",
        help="serve agents over HTTP, with runs that survive a crash",
        description=(
            "Serve agents by the Agent Server protocol, which LangGraph's clients speak. Runs, threads and "
            "memory are kept in a file, or in PostgreSQL."
        ),
    )
    serve.add_argument(
        "agent",
        nargs="?",
        metavar="MODULE.py:AGENT",
        help="what to serve, or a file like langgraph.json (the default)",
    )
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, default=2024, help="the port (default: 2024; 0: any that is free)")
    serve.add_argument(
        "--allow-anyone",
        action="store_true",
        help="listen where others can reach this server, though it asks for no key",
    )
    serve.add_argument(
        "--database", metavar="FILE|URL", help="a file (default: .deepagents/server.db) or postgresql://..."
    )
    serve.add_argument(
        "--runs",
        type=read_number,
        default=10,
        help="how many runs work at once (default: 10; 0: leave them to workers)",
    )
    serve.add_argument(
        "--connections",
        type=read_count,
        default=1000,
        help="how many connections may be open at once, streams among them (default: 1000)",
    )
    serve.add_argument(
        "--operator",
        metavar="OWNER",
        help="the owner whose keys see at /metrics what belongs to all owners",
    )
    add_ages(serve)
    _add_limits(serve)
    add_debug(serve)


def add_worker(commands: Any) -> None:
    """Describe the command and its options."""
    worker = commands.add_parser(
        "worker",
        help="run the agents of servers that share a PostgreSQL",
        description=(
            "Run agents for servers that share a PostgreSQL: any number of workers, on any machine. If "
            "one is lost, its runs go on with another within seconds."
        ),
    )
    worker.add_argument(
        "agent",
        nargs="?",
        metavar="MODULE.py:AGENT",
        help="the agents, as for `deepagents serve` (default: langgraph.json)",
    )
    worker.add_argument("--database", metavar="URL", required=True, help="postgresql://USER@HOST/NAME")
    worker.add_argument(
        "--runs", type=read_count, default=10, help="how many runs work at once (default: 10)"
    )
    _add_limits(worker)
    worker.add_argument(
        "--move-from",
        metavar="VERSION",
        help="go on with runs that were left to this version of the code",
    )
    add_debug(worker)


def _add_limits(command: Any) -> None:
    command.add_argument(
        "--runs-per-owner",
        type=read_count,
        metavar="NUMBER",
        help="how many runs of one owner work at once, on all machines; say the same everywhere",
    )
    command.add_argument(
        "--code-version",
        default="1",
        metavar="VERSION",
        help="the version of the agents; runs are left to the version that they began with (default: 1)",
    )


def run(arguments: argparse.Namespace, *, model: Any = None) -> int:
    """Answer requests, or work for servers, until Ctrl-C or SIGTERM.

    Raises:
        CommandError: if there is nothing to serve, or nowhere to listen.
    """
    import asyncio

    from deepagents_server.config import load_config
    from deepagents_server.database.engine import database_url
    from deepagents_server.errors import ServeError
    from deepagents_server.serve import serve, work
    from deepagents_server.server import Settings

    try:
        config = load_config(arguments.agent, Path.cwd())
        settings = Settings(
            database_url(arguments.database, config.directory),
            slots=arguments.runs,
            version=arguments.code_version,
            owner_limit=arguments.runs_per_owner,
            **({name: getattr(arguments, name) for name in _OF_SERVERS if arguments.command == "serve"}),
        )
        # Agents that say nothing of it, in the modules that are loaded now, ask again as often.
        os.environ.setdefault(RETRIES, str(default_retries()))
        if arguments.command == "worker":
            asyncio.run(work(config, settings, partial(_say, "Working as"), arguments.move_from))
            return Exit.DONE
        kept = {name: getattr(arguments, f"keep_{name}") for name in ("threads", "runs", "events")}
        given: dict[str, Any] = {name: age for name, age in kept.items() if age is not None}
        config = replace(config, ages=replace(config.ages, **given))
        ready = partial(_say, f"Serving {', '.join(config.graphs)} on")
        asyncio.run(serve(config, settings, arguments.host, arguments.port, ready))
    except ServeError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    return Exit.DONE


def _say(what: str, ready: str) -> None:
    sys.stdout.write(f"{what} {ready}\n")
    sys.stdout.flush()
