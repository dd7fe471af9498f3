"""Show who has which runs of a server, end them, and let those that failed go on."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from deepagents_cli.commands.db import add_database, work_on_database
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.text import one_line
from deepagents_cli.values import read_count

with imported_when_run():
    from deepagents_server.database import engine, notices, run_control

_STATUSES: Final = ("pending", "running", "success", "error", "interrupted", "timeout")
_ACTIVE: Final = ("pending", "running")
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_SHOWN: Final = (
    "run_id", "owner", "thread_id", "graph_id", "status", "age", "worker", "attempt", "version", "priority",
    "cancelled", "error", "created_at", "updated_at",
)  # fmt: skip
_TABLE: Final = ("run_id", "status", "age", "owner", "thread_id", "graph_id", "worker", "attempt", "error")


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "runs",
        help="list, show, retry and cancel the runs of a server",
        description="Show who has which runs of a server, end them, and let those that failed go on.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the runs of all owners, the newest first")
    listing.add_argument("--owner", metavar="OWNER", help="those of this owner")
    listing.add_argument("--thread", metavar="ID", help="those of this thread")
    listing.add_argument(
        "--status",
        choices=("active", *_STATUSES, "all"),
        default="active",
        help="those that are so far (default: active, which is pending or running)",
    )
    listing.add_argument(
        "--limit", type=read_count, default=100, metavar="N", help="at most so many (default: 100)"
    )
    show = actions.add_parser("show", help="show all that is known of a run")
    retry = actions.add_parser(
        "retry", help="let runs that failed or were ended go on from their last checkpoints"
    )
    cancel = actions.add_parser("cancel", help="end runs that wait or work")
    cancel.add_argument(
        "--rollback", action="store_true", help="also take back what they did to their threads"
    )
    show.add_argument("run", metavar="RUN", help="the id of a run")
    for action in (retry, cancel):
        action.add_argument("run", nargs="+", metavar="RUN", help="the ids of runs")
    for action in (listing, show):
        action.add_argument("--json", action="store_true", help="write JSON, one object a line")
    for action in (listing, show, retry, cancel):
        add_database(action)


def run(arguments: argparse.Namespace, *, model: Any = None) -> int:
    """Do what was asked with the runs of a database."""
    return work_on_database(arguments, _work, create=False)


async def _work(database: engine.Database, arguments: argparse.Namespace) -> None:
    match arguments.action:
        case "list":
            given = {"owner": arguments.owner, "thread_id": arguments.thread}
            columns = {name: value for name, value in given.items() if value is not None}
            statuses = {"active": _ACTIVE, "all": ()}.get(arguments.status, (arguments.status,))
            rows = await run_control.list_runs(database, limit=arguments.limit, statuses=statuses, **columns)
            _write([_describe(row) for row in rows], as_json=arguments.json)
        case "show":
            row = await run_control.find_run(database, arguments.run)
            shown = {**_describe(row), "metadata": row["metadata"], "kwargs": json.loads(row["kwargs"])}
            _show(shown, as_json=arguments.json)
        case _:
            await _change_all(database, arguments)


async def _change_all(database: engine.Database, arguments: argparse.Namespace) -> None:
    exchange = notices.Notices(database)
    async with exchange.exchanging():
        for name in arguments.run:
            row, done = await run_control.find_run(database, name), "ends"
            if arguments.action == "retry":
                await run_control.retry_run(database, exchange, row)
                done = "goes on as soon as there is room"
            elif row["status"] not in _ACTIVE:
                done = f"was over already: {row['status']}"
            else:
                action = "rollback" if arguments.rollback else "interrupt"
                await run_control.end_run(database, exchange, row, action)
            sys.stdout.write(f"{name} {done}.\n")


def _describe(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a run."""
    age = datetime.now(UTC) - datetime.fromisoformat(row["created_at"])
    error = json.loads(row["error"]) if row["error"] else None
    made = {**row, "age": max(0.0, round(age.total_seconds(), 3)), "error": error}
    return {name: made[name] for name in _SHOWN}


def _write(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.writelines(f"{json.dumps(row)}\n" for row in rows)
        return
    lines = [[name.removesuffix("_id") for name in _TABLE], *([*_cells(row)] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines if rows else ():
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write(f"{text.rstrip()}\n")


def _cells(row: Mapping[str, Any]) -> Iterator[str]:
    for name in _TABLE:
        match name, row[name]:
            case _, None | "":
                yield "-"
            case "age", seconds:
                yield _format_age(seconds)
            case "error", error:
                yield one_line(f"{error['error']}: {error['message']}")[:80]
            case _, value:
                yield one_line(str(value))


def _format_age(seconds: float) -> str:
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{seconds / size:.0f} {unit}"


def _show(shown: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(f"{json.dumps(shown)}\n")
        return
    for name, value in shown.items():
        text = value if isinstance(value, str) else json.dumps(value)
        sys.stdout.write(f"{name:<10}  {one_line(text)}\n")
