"""Start runs at set times: each once, however many servers there are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa
from croniter import CroniterBadDateError, croniter

from deepagents_server.auth import User
from deepagents_server.background import in_background
from deepagents_server.create import creating
from deepagents_server.database.engine import Row
from deepagents_server.database.owners import Scope
from deepagents_server.database.tables import crons, server_time
from deepagents_server.errors import ApiError
from deepagents_server.serialize import load
from deepagents_server.server import Server

_LOOK: Final = 1.0
_SHORTEST: Final = 60
"""Seconds between two runs of a schedule, at least."""
_READ: Final = 100
"""Schedules that are read at a time."""
_log: Final = logging.getLogger("deepagents.server")


def next_date(schedule: str, timezone: str | None, end: str | None, after: str) -> str | None:
    """Return when a schedule is due next after a time, in UTC; `None` if that is after its end.

    Raises:
        ApiError: for what is not a schedule or timezone.
    """
    try:
        zone = ZoneInfo(timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ApiError(422, f"timezone: {timezone!r} is none; write one such as 'Europe/Paris'.") from error
    if len(schedule.split()) != 5 or not croniter.is_valid(schedule):
        raise ApiError(422, f"schedule: {schedule!r} is none; write five fields, as in '0 9 * * 1-5'.")
    try:
        found: Any = croniter(schedule, datetime.fromisoformat(after).astimezone(zone)).get_next(datetime)
    except CroniterBadDateError as error:
        raise ApiError(422, f"schedule: {schedule!r} names a day that never comes.") from error
    due = found.astimezone(UTC).isoformat(timespec="microseconds")
    return None if end and due > end else due


async def start_due(server: Server) -> int:
    """Start the runs of all schedules that are due; of several servers, one gets each."""
    place: sa.ColumnElement[Any] = sa.tuple_(crons.c.next_run_date, crons.c.cron_id)
    due = sa.select(crons).where(crons.c.enabled == 1, crons.c.next_run_date <= server_time())
    due = due.order_by(crons.c.next_run_date, crons.c.cron_id).limit(_READ)
    found = await server.database.rows(due)
    started = 0
    while found:
        started += sum([await _start_one(server, row) for row in found])
        seen = sa.tuple_(found[-1]["next_run_date"], found[-1]["cron_id"])
        found = await server.database.rows(due.where(place > seen))
    return started


async def _start_one(server: Server, row: Row) -> bool:
    """Make the run of a schedule, and note the next date, in one transaction; `False` if another has."""
    try:
        after = await server.database.now()
        following = next_date(row["schedule"], row["timezone"], row["end_time"], after)
    except ApiError as error:
        # It could be read when it was made: timezones come and go with the system's data.
        _log.warning("Schedule %s cannot be read: %s", row["cron_id"], error.detail)
        return False
    owner = row["owner"]
    mine = server.of(Scope(owner, User({"identity": owner}) if owner else None))
    taken = (
        crons.update()
        .where(crons.c.cron_id == row["cron_id"], crons.c.next_run_date == row["next_run_date"])
        .values(next_run_date=following)
    )
    payload: dict[str, Any] = load(row["payload"])
    kept = {"on_completion": "keep"} if row["on_run_completed"] == "keep" else {}
    metadata = {**row["metadata"], "cron_id": row["cron_id"]}
    given = {**payload, **kept, "assistant_id": row["assistant_id"], "metadata": metadata}
    try:
        async with creating(mine) as new:
            if not (await new.connection.execute(taken)).rowcount:
                return False
            await new.add(given, row["thread_id"])
    except ApiError as error:
        _log.warning("Schedule %s started no run: %s", row["cron_id"], error.detail)
        return bool(await mine.database.execute(taken))
    return True


def scheduling(server: Server) -> AbstractAsyncContextManager[None]:
    """Start what is due until the block ends."""
    return in_background(_watch(server))


async def _watch(server: Server) -> None:
    while True:
        pause = float(_SHORTEST)
        try:
            await start_due(server)
            # To the beginning of the next minute: no schedule is finer.
            pause -= datetime.fromisoformat(await server.database.now()).timestamp() % _SHORTEST
        except Exception as error:  # noqa: BLE001
            # Whatever it was: without this loop nothing would be started any more.
            server.database.log_failure("Schedules cannot be looked for", error)
        await asyncio.sleep(pause + 0.05)


def show_cron(row: Mapping[str, Any]) -> dict[str, Any]:
    """Show a schedule as clients read it."""
    shown = {name: value for name, value in row.items() if name != "owner"}
    return {
        **shown,
        "enabled": bool(row["enabled"]),
        "payload": load(row["payload"]),
        "user_id": row["owner"],
    }
