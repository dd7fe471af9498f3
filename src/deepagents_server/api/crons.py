"""Serve schedules: made, found, changed, removed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, Literal
from uuid import uuid4

import sqlalchemy as sa
from pydantic import AwareDatetime
from starlette.responses import Response

from deepagents_server.api.bodies import Id, SearchBody, merge_metadata
from deepagents_server.api.common import answer, answer_search
from deepagents_server.api.endpoint import DONE, Endpoint
from deepagents_server.api.runs import RunBody
from deepagents_server.crons import next_date, show_cron
from deepagents_server.database.assistants import get_assistant
from deepagents_server.database.engine import Row
from deepagents_server.database.filters import clean_metadata, contains
from deepagents_server.database.quotas import check_schedules
from deepagents_server.database.tables import crons
from deepagents_server.database.threads import get_thread
from deepagents_server.errors import ApiError, not_found
from deepagents_server.graphs import system_assistant_id
from deepagents_server.serialize import dump_text, load
from deepagents_server.server import Server

_SORTED: Final = (
    "created_at",
    "cron_id",
    "assistant_id",
    "thread_id",
    "next_run_date",
    "end_time",
    "updated_at",
)
_OWN: Final = {"schedule", "timezone", "end_time", "enabled", "on_run_completed", "assistant_id", "metadata"}


class CronBody(RunBody):
    """A schedule to be made."""

    schedule: str
    timezone: str | None = None
    end_time: AwareDatetime | datetime | None = None
    enabled: bool | None = None
    on_run_completed: Literal["delete", "keep"] | None = None


class CronChangeBody(CronBody):
    """A change of a schedule."""

    assistant_id: str = ""
    schedule: str = ""


class CronSearchBody(SearchBody):
    """Schedules that are looked for."""

    assistant_id: str | None = None
    thread_id: Id | None = None
    enabled: bool | None = None


async def create(server: Server, given: CronBody, *, thread_id: str | None = None) -> Response:
    """Make a schedule: for runs on a thread, or each on one of its own."""
    if given.webhook:
        server.webhooks.check(given.webhook)
    stamp, end = await server.database.now(), _utc(given.end_time)
    async with server.database.write() as connection:
        await check_schedules(connection, server.database.owner)
        assistant = await get_assistant(connection, given.assistant_id)
        if thread_id:
            await get_thread(connection, thread_id)
        row = {
            "cron_id": str(uuid4()),
            "owner": server.database.owner,
            "assistant_id": assistant["assistant_id"],
            "thread_id": thread_id,
            "schedule": given.schedule,
            "timezone": given.timezone,
            "payload": dump_text(given.model_dump(exclude=_OWN, exclude_none=True)),
            "metadata": clean_metadata(given.metadata),
            "enabled": 0 if given.enabled is False else 1,
            "on_run_completed": given.on_run_completed,
            "end_time": end,
            "next_run_date": next_date(given.schedule, given.timezone, end, stamp),
            "created_at": stamp,
            "updated_at": stamp,
        }
        await connection.execute(crons.insert().values(row))
    return answer(show_cron(row))


def _utc(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return aware.astimezone(UTC).isoformat(timespec="microseconds")
    except OverflowError as error:
        raise ApiError(422, f"end_time: {moment.isoformat()!r} is out of the calendar.") from error


async def _cron(server: Server, cron_id: str) -> Row:
    row = await server.database.row(sa.select(crons).where(crons.c.cron_id == cron_id))
    if row is None:
        raise not_found("schedule", cron_id)
    return row


async def get(server: Server, *, cron_id: str) -> Response:
    """Show a schedule."""
    return answer(show_cron(await _cron(server, cron_id)))


async def change(server: Server, given: CronChangeBody, *, cron_id: str) -> Response:
    """Change a schedule."""
    row = dict(await _cron(server, cron_id))
    if given.webhook:
        server.webhooks.check(given.webhook)
    changed = given.model_dump(exclude_unset=True, exclude=_OWN)
    row["payload"] = dump_text({**load(row["payload"]), **changed})
    for name in {"schedule", "timezone", "on_run_completed"} & given.model_fields_set:
        row[name] = getattr(given, name)
    if "end_time" in given.model_fields_set:
        row["end_time"] = _utc(given.end_time)
    if given.enabled is not None:
        row["enabled"] = int(given.enabled)
    if given.metadata:
        row["metadata"] = merge_metadata(server, row["metadata"], given.metadata)
    row["updated_at"] = await server.database.now()
    row["next_run_date"] = next_date(row["schedule"], row["timezone"], row["end_time"], row["updated_at"])
    await server.database.execute(crons.update().where(crons.c.cron_id == cron_id).values(row))
    return answer(show_cron(row))


async def delete(server: Server, *, cron_id: str) -> None:
    """Remove a schedule."""
    await _cron(server, cron_id)
    await server.database.execute(crons.delete().where(crons.c.cron_id == cron_id))


def _make_query(given: CronSearchBody) -> sa.Select[Any]:
    query = sa.select(crons)
    if given.thread_id:
        query = query.where(crons.c.thread_id == given.thread_id)
    if name := given.assistant_id:
        query = query.where(crons.c.assistant_id.in_([name, system_assistant_id(name)]))
    if given.enabled is not None:
        query = query.where(crons.c.enabled == int(given.enabled))
    return query.where(contains(crons.c.metadata, given.metadata)) if given.metadata else query


async def search(server: Server, given: CronSearchBody) -> Response:
    """Find schedules."""
    return await answer_search(server, _make_query(given), crons, given, _SORTED, show_cron)


async def count(server: Server, given: CronSearchBody) -> Response:
    """Count schedules."""
    return answer(await server.database.count(_make_query(given)))


_CREATE: Final = ("crons", "create")
_SEARCH: Final = ("crons", "search")
ENDPOINTS: Final = [
    Endpoint("/runs/crons", "POST", create, _CREATE, body=CronBody),
    Endpoint("/threads/{thread_id}/runs/crons", "POST", create, _CREATE, body=CronBody),
    Endpoint("/runs/crons/search", "POST", search, _SEARCH, body=CronSearchBody),
    Endpoint("/runs/crons/count", "POST", count, _SEARCH, body=CronSearchBody),
    Endpoint("/runs/crons/{cron_id}", "GET", get, ("crons", "read")),
    Endpoint("/runs/crons/{cron_id}", "PATCH", change, ("crons", "update"), body=CronChangeBody),
    Endpoint("/runs/crons/{cron_id}", "DELETE", delete, ("crons", "delete"), answer=DONE),
]
