"""Serve agents over HTTP, and work for servers that share a database."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from deepagents_cli.commands.db import add_ages, explained
from deepagents_cli.commands.environment import HOW, PREFIX, actions_of, read_environment
from deepagents_cli.commands.options import add_debug
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit, drop_output
from deepagents_cli.text import clean
from deepagents_cli.values import RETRIES, default_retries, read_address, read_count, read_number, read_size
from deepagents_server.logs import FORMATS, LEVELS, logging_to_stderr

with imported_when_run():
    import asyncio

    from deepagents_server import config, server
    from deepagents_server import serve as serving
    from deepagents_server.database import place

_OF_SERVERS: Final = ("connections", "connections_per_address", "allow_anyone", "operator", "max_body")
_WITHOUT_EFFECT: Final = {
    "--no-browser": "no browser is opened",
    "--no-reload": "code that changes is read at the next start",
    "--allow-blocking": "code that blocks is never refused",
    "--studio-url": "no browser is opened; name this server to Studio as its base URL",
}
"""Options of `langgraph dev` that ask for what happens anyhow."""
_REFUSED: Final = {
    "--tunnel": "make a key with `deepagents keys create NAME`, and let your own tunnel lead here, such as "
    "`cloudflared tunnel --url http://127.0.0.1:2024`",
    "--debug-port": "start `python -m debugpy --listen PORT -m deepagents serve`",
    "--wait-for-client": "start `python -m debugpy --listen PORT --wait-for-client -m deepagents serve`",
    "--ssl-certfile": "put a proxy that speaks TLS in front",
    "--ssl-keyfile": "put a proxy that speaks TLS in front",
}
"""Further ones, and the way to what they ask for."""
_log: Final = logging.getLogger("deepagents.server")
_SWITCHES: Final = ("--no-browser", "--no-reload", "--allow-blocking", "--tunnel", "--wait-for-client")


def add_options(commands: Any) -> None:
    """Describe both commands and their options."""
    _add_serve(commands)
    _add_worker(commands)


def _add_serve(commands: Any) -> None:
    serve = commands.add_parser(
        "serve",
        help="serve agents over HTTP, with runs that survive a crash",
        description=(
            "Serve agents by the Agent Server protocol, which LangGraph's clients speak. Runs, threads and "
            "memory are kept in a file, or in PostgreSQL."
        ),
        epilog=HOW,
    )
    _add_agent(serve, "what to serve, or a file like langgraph.json (the default)")
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    serve.add_argument(
        "--port", type=read_number, default=2024, help="the port (default: 2024; 0: any that is free)"
    )
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
        "--n-jobs-per-worker",
        type=read_number,
        metavar="NUMBER",
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
        "--connections-per-address",
        type=read_count,
        metavar="NUMBER",
        help="how many of them one address may have (default: half; behind a proxy, all)",
    )
    serve.add_argument(
        "--max-body",
        type=read_size,
        metavar="SIZE",
        help="how large the body of a request may be, such as 100MB (default: 32MB)",
    )
    serve.add_argument(
        "--operator", metavar="OWNER", help="the owner whose keys see at /metrics what belongs to all owners"
    )
    add_ages(serve)
    _add_limits(serve)
    _add_logs(serve)
    for option in (*_WITHOUT_EFFECT, *_REFUSED):
        kind: Any = {"action": "store_true"} if option in _SWITCHES else {}
        serve.add_argument(option, help=argparse.SUPPRESS, **kind)
    add_debug(serve)
    read_environment(actions_of(serve))


def _add_worker(commands: Any) -> None:
    worker = commands.add_parser(
        "worker",
        help="run the agents of servers that share a PostgreSQL",
        description=(
            "Run agents for servers that share a PostgreSQL: any number of workers, on any machine. If "
            "one is lost, its runs go on with another within seconds."
        ),
        epilog=HOW,
    )
    _add_agent(worker, "the agents, as for `deepagents serve` (default: langgraph.json)")
    worker.add_argument("--database", metavar="URL", required=True, help="postgresql://USER@HOST/NAME")
    worker.add_argument(
        "--runs", type=read_count, default=10, help="how many runs work at once (default: 10)"
    )
    worker.add_argument(
        "--metrics",
        type=read_address,
        metavar="[HOST:]PORT",
        help="show metrics of this worker for Prometheus there, to everybody who reaches it",
    )
    _add_limits(worker)
    _add_logs(worker)
    worker.add_argument(
        "--move-from", metavar="VERSION", help="go on with runs that were left to this version of the code"
    )
    add_debug(worker)
    read_environment(actions_of(worker))


def _add_agent(command: Any, text: str) -> None:
    command.add_argument("agent", nargs="?", metavar="MODULE.py:AGENT", help=text)
    command.add_argument(
        "--config", metavar="FILE", help="a file like langgraph.json; the same as naming it alone"
    )


def _add_logs(command: Any) -> None:
    command.add_argument(
        "--log-level",
        "--server-log-level",
        type=str.lower,
        choices=LEVELS,
        default="warning",
        help="what is logged to standard error (default: warning; info: each request and run)",
    )
    command.add_argument(
        "--log-format",
        choices=FORMATS,
        default="text",
        help="a line of text for people, or a JSON object a line (default: text)",
    )


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
    # It may hold a password, and what agents start is not to inherit that.
    os.environ.pop(f"{PREFIX}DATABASE", None)
    with logging_to_stderr(arguments.log_level, arguments.log_format, clean):
        _check(arguments)
        with explained():
            _run(arguments)
    return Exit.DONE


def _check(arguments: argparse.Namespace) -> None:
    if arguments.agent and arguments.config:
        raise CommandError(
            "--config names what to serve, and so does the argument; leave one out", Exit.USAGE
        )
    if arguments.command == "worker":
        return
    given = [name for name in (*_WITHOUT_EFFECT, *_REFUSED) if vars(arguments)[name[2:].replace("-", "_")]]
    for name in given:
        if name in _REFUSED:
            raise CommandError(f"{name} is not done here; {_REFUSED[name]}", Exit.USAGE)
        _log.warning("%s has no effect: %s", name, _WITHOUT_EFFECT[name])


def _run(arguments: argparse.Namespace) -> None:
    served = config.load_config(arguments.config or arguments.agent, Path.cwd())
    of_server = _OF_SERVERS if arguments.command == "serve" else ()
    settings = server.Settings(
        place.database_url(arguments.database, served.directory),
        slots=arguments.runs,
        version=arguments.code_version,
        owner_limit=arguments.runs_per_owner,
        **{name: value for name in of_server if (value := getattr(arguments, name)) is not None},
    )
    # Agents that say nothing of it, in the modules that are loaded now, ask again as often.
    os.environ[RETRIES] = str(default_retries())
    if arguments.command == "worker":
        ready = partial(_say, "Working as")
        asyncio.run(serving.work(served, settings, ready, arguments.move_from, arguments.metrics))
        return
    kept = {name: getattr(arguments, f"keep_{name}") for name in ("threads", "runs", "events")}
    given: dict[str, Any] = {name: age for name, age in kept.items() if age is not None}
    served = replace(served, ages=replace(served.ages, **given))
    ready = partial(_say, f"Serving {', '.join(served.graphs)} on")
    asyncio.run(serving.serve(served, settings, arguments.host, arguments.port, ready))


def _say(what: str, ready: str) -> None:
    try:
        sys.stdout.write(f"{what} {ready}\n")
        sys.stdout.flush()
    except OSError as error:
        # Who started it in the background may have closed that.
        drop_output()
        _log.warning("%s %s; %s", what, ready, error)
