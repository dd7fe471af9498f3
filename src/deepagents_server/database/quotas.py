"""Limit what owners use: so many runs at once, and tokens and money within a time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents import Limits
from deepagents._values import valueclass
from deepagents.limits import LEAST_ANSWER
from deepagents_server.database.engine import Database, Row
from deepagents_server.database.runs import ACTIVE, add
from deepagents_server.database.tables import crons, quotas, runs
from deepagents_server.errors import ApiError

_MEGABYTE: Final = 1_000_000
_LEAST: Final = 1e-9
"""Of amounts that were added up, seldom exactly nothing is left."""


@valueclass
class Quota:
    """What an owner may use; `None` is as much as they like."""

    runs: int | None = None
    """That wait or work at once."""
    tokens: int | None = None
    money: float | None = None
    schedules: int | None = None
    megabytes: int | None = None
    """Of threads, their states and events, and items; from then on, nothing more is taken."""
    seconds: int = 86400
    """From the first use to the time at which tokens and money count from zero again."""


async def set_quota(database: Database, owner: str, quota: Quota) -> None:
    """Change what an owner may use; what was used meanwhile stays counted."""
    async with database.write() as connection:
        await add(connection, quotas, {"owner": owner})
        changed = quotas.update().where(quotas.c.owner == owner).values(asdict(quota))
        await connection.execute(changed)


async def list_quotas(database: Database) -> list[Row]:
    """Return the quotas of all owners, with what they have used."""
    return await database.rows(sa.select(quotas).order_by(quotas.c.owner))


async def check_quota(connection: AsyncConnection, owner: str, leaving: int = 0) -> None:
    """Refuse a further run of an owner who has none left; `leaving` of his runs make way for it.

    Raises:
        ApiError: 429, with what is used, and when there is more.
    """
    if not owner:
        return
    # Locked, or two servers that count at once would both find room.
    query = sa.select(quotas).where(quotas.c.owner == owner).with_for_update()
    found = (await connection.execute(query)).mappings().first()
    if found is None:
        return
    quota: Row = dict(found)
    for used in _describe_used_up(quota):
        ends = quota["began_at"] + quota["seconds"]
        raise ApiError(
            429,
            f"Used are {used}; more is possible from {_moment(ends)} on.",
            {"retry-after": str(math.ceil(ends - time.time()))},
        )
    _refuse_to_keep(quota)
    if quota["runs"] is None:
        return
    active = sa.select(sa.func.count()).where(runs.c.owner == owner, runs.c.status.in_(ACTIVE))
    at_once = (await connection.execute(active)).scalar_one() - leaving
    if at_once >= quota["runs"]:
        raise ApiError(
            429,
            f"{at_once} runs wait or work, of {quota['runs']} that may at once; "
            "one more is possible when one of them is over.",
        )


async def check_kept(connection: AsyncConnection, owner: str) -> None:
    """Refuse what an owner wants to keep who keeps as much as he may.

    Raises:
        ApiError: 429, with how much that is.
    """
    query = sa.select(quotas).where(quotas.c.owner == owner)
    if quota := (await connection.execute(query)).mappings().first():
        _refuse_to_keep(dict(quota))


def _refuse_to_keep(quota: Row) -> None:
    if quota["megabytes"] is not None and quota["kept_bytes"] >= quota["megabytes"] * _MEGABYTE:
        raise ApiError(
            429, f"Kept are {_describe_kept(quota)}; remove threads or items, and try again later."
        )


def _describe_kept(quota: Mapping[str, Any]) -> str:
    return f"{quota['kept_bytes'] / _MEGABYTE:,.1f} of {quota['megabytes']:,} MB"


async def check_schedules(connection: AsyncConnection, owner: str) -> None:
    """Refuse a further schedule of an owner who has as many as he may.

    Raises:
        ApiError: 429, with how many that are.
    """
    # Locked, or two servers that count at once would both find room.
    query = sa.select(quotas.c.schedules).where(quotas.c.owner == owner).with_for_update()
    limit = (await connection.execute(query)).scalar()
    counted = sa.select(sa.func.count()).where(crons.c.owner == owner)
    if limit is not None and (await connection.execute(counted)).scalar_one() >= limit:
        raise ApiError(429, f"There are {limit} schedules, as many as may be; remove one first.")


async def find_rest(database: Database, owner: str) -> Limits | None:
    """Return what one run of an owner may use of tokens and money; `None` is as much as it likes.

    Raises:
        ApiError: 429, if nothing is left.
    """
    quota = await _read(database, owner) if owner else None
    for used in _describe_used_up(quota) if quota else ():
        raise ApiError(429, f"Used are {used}.")
    return _limits(quota, {})


async def add_used(
    database: Database, owner: str, spent: Mapping[str, float], so_far: Mapping[str, float]
) -> Limits | None:
    """Count what a run of an owner has spent; return what it may use in all, having used `so_far`."""
    if not any(spent.values()):
        return _limits(await _read(database, owner), so_far)
    over, stamp = quotas.c.began_at + quotas.c.seconds <= time.time(), time.time()
    counted = {
        name: sa.case((over, 0), else_=quotas.c[name]) + spent.get(kind, 0)
        for kind, name in (("tokens", "used_tokens"), ("money", "used_money"))
    }
    began = sa.case((over, stamp), else_=quotas.c.began_at)
    added = quotas.update().where(quotas.c.owner == owner).values(**counted, began_at=began)
    async with database.write() as connection:
        found = (await connection.execute(added.returning(quotas))).mappings().first()
    return _limits(dict(found) if found else None, so_far)


async def _read(database: Database, owner: str) -> Row | None:
    return await database.row(sa.select(quotas).where(quotas.c.owner == owner))


def _limits(quota: Row | None, so_far: Mapping[str, float]) -> Limits | None:
    """Return what a run may use in all; what is used up is as little as limits can say."""
    if quota is None or (quota["tokens"] is None and quota["money"] is None):
        return None
    tokens, money = (_count_left(quota, kind) for kind in ("tokens", "money"))
    return Limits(
        tokens=None if tokens is None else max(1, int(so_far.get("tokens", 0) + max(tokens, 0))),
        money=None if money is None else max(_LEAST, so_far.get("money", 0) + max(money, 0)),
    )


def describe_bounds(quota: Mapping[str, Any]) -> Iterator[str]:
    """Say of each bound that has no time how much it allows."""
    if quota["runs"] is not None:
        yield f"{quota['runs']} runs at once"
    if quota["schedules"] is not None:
        yield f"{quota['schedules']} schedules"
    if quota["megabytes"] is not None:
        yield _describe_kept(quota)


def describe_used(quota: Mapping[str, Any]) -> Iterator[str]:
    """Say of each kind that is limited how much is used."""
    for kind, form in (("tokens", "{:,.0f} of {:,.0f} tokens"), ("money", "{:.4g} of {:.4g} in cost")):
        if (left := _count_left(quota, kind)) is not None:
            yield form.format(quota[kind] - left, quota[kind])


def _describe_used_up(quota: Mapping[str, Any]) -> Iterator[str]:
    limited = (kind for kind in ("tokens", "money") if quota[kind] is not None)
    for kind, used in zip(limited, describe_used(quota), strict=True):
        # With less no model is asked, so that a run would end before it began.
        if (_count_left(quota, kind) or 0) < (LEAST_ANSWER if kind == "tokens" else _LEAST):
            yield used


def _count_left(quota: Mapping[str, Any], kind: str) -> float | None:
    if quota[kind] is None:
        return None
    is_over = quota["began_at"] + quota["seconds"] <= time.time()
    return quota[kind] - (0 if is_over else quota[f"used_{kind}"])


def _moment(stamp: float) -> str:
    return datetime.fromtimestamp(stamp, UTC).isoformat(timespec="seconds")
