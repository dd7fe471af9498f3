"""Choose which of the runs that wait begin next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents_server.database.engine import Database, Row
from deepagents_server.database.runs import Taken, take
from deepagents_server.database.tables import PENDING, leases, runs, server_time
from deepagents_server.serialize import seconds_between

_OWNERS_LOCK: Final = 0x6465_6572
_FIRST: Final = runs.alias()

Find = Callable[[sa.Select[Any]], Awaitable[list[Row]]]


@dataclass(frozen=True)
class Claim:
    """What a worker may take."""

    worker: str
    graphs: Sequence[str]
    version: str
    limit: int
    owner_limit: int | None = None
    """How many runs of one owner may work at once, everywhere."""
    busy: Collection[str] = ()
    """The owners of the runs that work here."""
    spare: int = 0
    """How many of the places that are free here are for other owners."""


async def first_due(database: Database, after: str | None = None) -> tuple[float | None, str]:
    """Return in how many seconds the first of the runs that wait is due, and the time of the database.

    `after` leaves out those that were due at such a time. A run that waits for nothing is always due.
    """
    later = [] if after is None else [runs.c.due_at > after]
    first = sa.select(sa.func.min(runs.c.due_at)).where(runs.c.status == "pending", *later)
    query: Any = sa.select(first.scalar_subquery().label("due"), server_time().label("now"))
    row = await database.row(query)
    assert row
    due, moment = row["due"], row["now"]
    return (None if due is None else seconds_between(moment, due or moment)), moment


async def queue_age(database: Database) -> float:
    """Return for how many seconds the first of the runs that may begin has waited."""
    since = sa.case((runs.c.due_at > runs.c.updated_at, runs.c.due_at), else_=runs.c.updated_at)
    waits = sa.select(sa.func.min(since)).where(runs.c.status == PENDING, runs.c.due_at <= server_time())
    query: Any = sa.select(waits.scalar_subquery().label("since"), server_time().label("now"))
    (row,) = await database.rows(query)
    return max(0.0, seconds_between(row["since"] or row["now"], row["now"]))


async def claim(database: Database, wanted: Claim) -> tuple[list[Taken], bool]:
    """Take runs that may start: due, first on their thread, and the thread free; of each owner in turn.

    Return also whether there may be more, of an owner whose runs another worker counts just now.
    """
    choice = _Choice(wanted, await _count_at_work(database, wanted))
    if not database.is_shared:
        # Among thousands that wait for their threads this takes long, so not while the event loop waits.
        await choice.fill(database.rows)
    async with database.write() as connection:
        if database.is_shared:
            choice.connection = connection
            await choice.fill(choice.lock)
        for passed, early in choice.find_passed():
            moved = runs.update().where(runs.c.run_id == passed["run_id"])
            await connection.execute(moved.values(turn=early["turn"]))
        taken = [await take(connection, run_id, wanted.worker, "pending") for run_id in choice.chosen]
    return [each for each in taken if each], choice.is_held_up


def _waiting(wanted: Claim) -> sa.Select[Any]:
    earlier = sa.exists().where(
        _FIRST.c.thread_id == runs.c.thread_id,
        _FIRST.c.status == PENDING,
        _FIRST.c.number < runs.c.number,
        _FIRST.c.due_at <= server_time(),
    )
    columns: list[sa.Column[Any]] = [runs.c.run_id, runs.c.owner, runs.c.turn]
    return (
        sa.select(*columns)
        .join(leases, leases.c.thread_id == runs.c.thread_id)
        .where(
            runs.c.status == PENDING,
            # In an expression, or SQLite would read by date all that wait, and sort them.
            runs.c.due_at.concat("") <= server_time(),
            runs.c.graph_id.in_(wanted.graphs),
            runs.c.version == wanted.version,
            leases.c.run_id.is_(None),
            ~earlier,
        )
    )


@dataclass
class _Choice:
    """Chooses runs: owners by their turns, and of each owner the most urgent run that waits."""

    wanted: Claim
    at_work: Counter[str]
    """By owner, how many runs work everywhere, if that is limited."""
    chosen: dict[str, Row] = field(default_factory=dict[str, Row])
    connection: AsyncConnection | None = None
    is_held_up: bool = False
    """Whether another worker counted the runs of an owner meanwhile."""
    _turns: list[Row] = field(default_factory=list[Row])

    async def lock(self, query: sa.Select[Any]) -> list[Row]:
        """Find runs, and keep other workers from them until the transaction ends."""
        assert self.connection
        locked = await self.connection.execute(query.with_for_update(of=leases, skip_locked=True))
        return [dict(row) for row in locked.mappings()]

    async def fill(self, find: Find) -> None:
        """Choose as many as there is room for."""
        limit = self.wanted.owner_limit
        while room := self.wanted.limit - len(self.chosen):
            full = [owner for owner, number in self.at_work.items() if limit and number >= limit]
            further = self._left().where(runs.c.owner.not_in([*full, *self._find_owners_at_home(room)]))
            turns = await find(further.order_by(runs.c.turn, runs.c.number).limit(room))
            for turn in turns:
                if await self._may_have(turn["owner"]):
                    await self._choose(turn, find)
            if len(turns) < room:
                return

    def _left(self) -> sa.Select[Any]:
        return _waiting(self.wanted).where(runs.c.run_id.not_in([*self.chosen]))

    def _find_owners_at_home(self, room: int) -> set[str]:
        """Return those who must leave the last places to others: they have runs at work here."""
        here = {*self.wanted.busy, *(row["owner"] for row in self.chosen.values())}
        return here - {""} if room <= self.wanted.spare else set()

    async def _may_have(self, owner: str) -> bool:
        """Tell whether one more run of an owner may work."""
        if owner in self._find_owners_at_home(self.wanted.limit - len(self.chosen)):
            return False
        limit = self.wanted.owner_limit
        if limit and self.connection and all(owner != row["owner"] for row in self.chosen.values()):
            # Two workers that count the runs of one owner at once would both find room.
            lock = sa.func.pg_try_advisory_xact_lock(_OWNERS_LOCK, sa.func.hashtext(owner))
            is_mine = (await self.connection.execute(sa.select(lock))).scalar()
            counted = await self.connection.execute(_count_running().where(runs.c.owner == owner))
            self.at_work[owner] = sum(row.number for row in counted) if is_mine else limit
            self.is_held_up = self.is_held_up or not is_mine
        return not limit or self.at_work[owner] < limit

    async def _choose(self, turn: Row, find: Find) -> None:
        mine = self._left().where(runs.c.owner == turn["owner"])
        for row in await find(mine.order_by(runs.c.priority.desc(), runs.c.number).limit(1)):
            self.at_work[row["owner"]] += 1
            self.chosen[row["run_id"]] = row
            self._turns.append(turn)

    def find_passed(self) -> Iterator[tuple[Row, Row]]:
        """Yield runs whose turn it was, each with a more urgent one of its owner that came before."""
        turns = {row["run_id"] for row in self._turns}
        passed = [row for row in self._turns if row["run_id"] not in self.chosen]
        early = [row for row in self.chosen.values() if row["run_id"] not in turns]
        by_owner = itemgetter("owner")
        yield from zip(sorted(passed, key=by_owner), sorted(early, key=by_owner), strict=True)


def _count_running() -> sa.Select[Any]:
    columns: list[Any] = [runs.c.owner, sa.func.count().label("number")]
    query: Any = sa.select(*columns).where(runs.c.status == "running").group_by(runs.c.owner)
    return query


async def _count_at_work(database: Database, wanted: Claim) -> Counter[str]:
    """Count by owner the runs that work, everywhere, if an owner may have so many only."""
    counted = await database.rows(_count_running()) if wanted.owner_limit else []
    return Counter({row["owner"]: row["number"] for row in counted})
