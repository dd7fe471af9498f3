"""Look after the database of a server, also while it serves."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deepagents_cli.commands.environment import read_environment
from deepagents_cli.commands.options import add_debug, say
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.values import read_age

with imported_when_run():
    import asyncio

    from deepagents_server import config, errors
    from deepagents_server.database import engine, maintenance, place


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    db = commands.add_parser(
        "db",
        help="migrate, prune, shrink and back up the database of a server",
        description="Look after the database of a server, also while it serves.",
    )
    actions = db.add_subparsers(dest="action", metavar="ACTION", required=True)
    migrate = actions.add_parser("migrate", help="bring the tables up to date; a server does so as it starts")
    prune = actions.add_parser(
        "prune",
        help="remove what is old; nothing that runs or waits for a person",
        description="Remove what is old, in small steps. What runs or waits for a person stays.",
    )
    add_ages(prune)
    vacuum = actions.add_parser("vacuum", help="give back the space of what was removed")
    backup = actions.add_parser("backup", help="copy the database as it is at one moment")
    backup.add_argument("file", type=Path, metavar="FILE", help="where to; it must not be there yet")
    for action in (migrate, prune, vacuum, backup):
        add_database(action)


def add_database(parser: argparse.ArgumentParser) -> None:
    """Let the database be named, and a failure be shown whole."""
    named = parser.add_argument(
        "--database",
        metavar="FILE|URL",
        help="as for `deepagents serve`, and in the same variable (default: .deepagents/server.db)",
    )
    read_environment([named])
    add_debug(parser)


def add_ages(parser: argparse.ArgumentParser) -> None:
    """Describe the options that say for how long things are kept."""
    for name, text in (
        ("threads", "remove threads that did not change for so long, such as 30d or 12h"),
        ("runs", "remove runs that ended so long ago, but the last of each thread"),
        ("events", "remove events that are as old, and can then not be read again"),
    ):
        parser.add_argument(f"--keep-{name}", type=read_age, metavar="AGE", help=text)


@contextmanager
def explained() -> Generator[None]:
    """Raise what a server refuses as wrong usage."""
    try:
        yield
    except errors.ServeError as error:
        raise CommandError(str(error), Exit.USAGE) from error


def work_on_database(
    arguments: argparse.Namespace,
    work: Callable[[engine.Database, argparse.Namespace], Awaitable[None]],
    *,
    create: bool,
) -> int:
    """Open the database that was named, also while servers have it open, and do this with it.

    Raises:
        CommandError: if it cannot be opened, or that cannot be done.
    """

    async def open_and_work() -> None:
        url = place.database_url(arguments.database, Path.cwd())
        if not create:
            maintenance.check(url)
        async with engine.open_database(url, alongside=True) as database:
            await work(database, arguments)

    with explained():
        asyncio.run(open_and_work())
    return Exit.DONE


def run(arguments: argparse.Namespace, *, model: Any = None) -> int:
    """Do what was asked with a database.

    Raises:
        CommandError: if that cannot be done.
    """
    with explained():
        return say(_do(arguments))


def _do(arguments: argparse.Namespace) -> str:
    """Return what was done."""
    url = place.database_url(arguments.database, Path.cwd())
    match arguments.action:
        case "migrate":
            before, now = asyncio.run(maintenance.migrate(url))
            return f"The database has version {now}{f', and had {before}' if before != now else ''}."
        case "prune":
            ages = config.Ages(arguments.keep_threads, arguments.keep_runs, arguments.keep_events)
            removed = maintenance.prune(url, ages)
            return f"Removed {removed.threads} threads, {removed.runs} runs, {removed.events} rows of events."
        case "vacuum":
            maintenance.vacuum(url)
            return "The space of what was removed is free."
        case _:
            maintenance.back_up(url, arguments.file)
            return f"Wrote {arguments.file} ({arguments.file.stat().st_size:,} bytes)."
