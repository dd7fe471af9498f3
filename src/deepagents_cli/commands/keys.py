"""Make, list and revoke the API keys of a server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any, Final

from deepagents_cli.commands.db import add_database, work_on_database
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.text import one_line
from deepagents_cli.values import read_amount, read_count

with imported_when_run():
    from deepagents_server import serialize
    from deepagents_server.database import engine, keys, quotas

_COUNTED: Final = {
    "runs": "runs that wait or work at once",
    "schedules": "schedules",
    "megabytes": "kept in threads and items",
    "tokens": "tokens of all models",
}
"""What an owner may use so much of, by its option."""
_WINDOWS: Final = {"hour": 3600, "day": 86400, "week": 7 * 86400, "month": 30 * 86400}


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "keys",
        help="make, list and revoke the API keys of a server",
        description=(
            "Make, list and revoke the API keys of a server. As soon as there is a key, every request needs "
            "one, and sees only what belongs to the owner of its key."
        ),
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="make a key, and show it once")
    create.add_argument("owner", metavar="OWNER", help="whose key it is; an owner may have several")
    given = actions.add_parser(
        "import", help="take a key that was made elsewhere, from standard input; the same one twice is once"
    )
    given.add_argument("owner", metavar="OWNER", help="whose key it is")
    limit = actions.add_parser("limit", help="change what an owner may use; what is left out has no limit")
    limit.add_argument("owner", metavar="OWNER", help="whose keys all count together")
    for action in (create, given):
        action.add_argument(
            "--days", type=read_count, metavar="N", help="for how long it works (default: always)"
        )
    for action in (create, limit):
        for name, text in _COUNTED.items():
            action.add_argument(f"--{name}", type=read_count, metavar="N", help=text)
        action.add_argument(
            "--cost", dest="money", type=read_amount, metavar="USD", help="what these may cost"
        )
        action.add_argument(
            "--per", choices=_WINDOWS, default="day", help="the time for tokens and cost (default: day)"
        )
    listing = actions.add_parser("list", help="list all keys, without their secret parts, and limits")
    revoke = actions.add_parser("revoke", help="let a key work no more, from the next second on")
    revoke.add_argument("key", metavar="ID", help="the first column of `deepagents keys list`")
    for action in (create, given, limit, listing, revoke):
        add_database(action)


def run(arguments: argparse.Namespace, *, model: Any = None) -> int:
    """Do what was asked with the keys of a database."""
    return work_on_database(arguments, _work, create=True)


async def _work(database: engine.Database, arguments: argparse.Namespace) -> None:
    match arguments.action:
        case "create" | "import":
            await _take_key(database, arguments)
        case "list":
            for row in await keys.list_keys(database):
                sys.stdout.write(f"{_describe(row)}\n")
            for quota in await quotas.list_quotas(database):
                sys.stdout.write(f"{_describe_quota(quota)}\n")
        case "limit":
            keys.check_owner(arguments.owner)
            await quotas.set_quota(database, arguments.owner, quotas.Quota(**_limits(arguments)))
        case _:
            if not await keys.revoke_key(database, arguments.key):
                raise CommandError(
                    f"No key {arguments.key!r} works here; `deepagents keys list` names them.", Exit.USAGE
                )


async def _take_key(database: engine.Database, arguments: argparse.Namespace) -> None:
    """Make a key and show it, or read one and show its id."""
    ends = arguments.days and serialize.now(arguments.days * _WINDOWS["day"])
    if arguments.action == "import":
        given = sys.stdin.read().strip()
        sys.stdout.write(f"{await keys.import_key(database, arguments.owner, given, ends)}\n")
        return
    text, _ = await keys.add_key(database, arguments.owner, ends)
    if quota := _limits(arguments):
        await quotas.set_quota(database, arguments.owner, quotas.Quota(**quota))
    sys.stdout.write(f"{text}\n")
    sys.stderr.write("Keep it now: it is shown only here.\n")


def _limits(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the quota that was asked for; nothing without a limit."""
    given = {name: getattr(arguments, name) for name in (*_COUNTED, "money")}
    limited = {name: value for name, value in given.items() if value is not None}
    return {**limited, "seconds": _WINDOWS[arguments.per]} if limited else {}


def _describe(row: Mapping[str, Any]) -> str:
    """Show a key as a line: its id, what it is good for, its dates and its owner."""
    ended = row["expires_at"] and row["expires_at"] <= serialize.now()
    state = "revoked" if row["revoked_at"] else "past" if ended else "works"
    until = f" until {row['expires_at'][:10]}" if row["expires_at"] else ""
    return f"{row['key_id']}  {state:<7}  {row['created_at'][:10]}{until}  {one_line(row['owner'])}"


def _describe_quota(quota: Mapping[str, Any]) -> str:
    """Show what an owner may use and has used."""
    bounds = quotas.describe_bounds(quota)
    seconds = quota["seconds"]
    window = next((name for name, value in _WINDOWS.items() if value == seconds), f"{seconds} s")
    used = [f"{each} per {window}" for each in quotas.describe_used(quota)]
    return f"{one_line(quota['owner'])} may use: {', '.join([*bounds, *used]) or 'any amount'}"
